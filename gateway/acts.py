"""What the audit calls an act, and what an admin reads."""

ACTS = {
    "plan.changed": "Plan changed",
    "quota.changed": "Quota changed",
    "tenant.suspended": "Suspended",
    "tenant.resumed": "Resumed",
    "instance.stop": "Put to sleep",
    "instance.wake": "Woken",
    "storage.clearing": "Woken past its storage, to make room",
    "egress.changed": "Way out changed",
    "credit.given": "Credit given",
    "credit.not_given": "Credit could not be given",
    "credit.revoked": "Credit taken back",
    "password_link.made": "Link for a new password made",
    "password.set_by_link": "New password set by a link",
    "admin.made": "Administrator made",
    "api_key.made": "Key for a program made",
    "api_key.rotated": "Key for a program rotated",
    "api_key.revoked": "Key for a program revoked",
    "own_key.set": "Own provider key set",
    "own_key.removed": "Own provider key removed",
    "provider.connected": "Provider connected",
    "provider.changed": "Provider changed",
    "provider.made_default": "Provider made the default",
    "provider.disconnected": "Provider disconnected",
    "fallback.changed": "Chain of models changed",
    "prices.corrected": "Prices corrected",
    "entries.exported": "Entries exported",
}
NOTES = {
    "stranger_key": "Key shown at another tenant's door",
    "quota_override": "Limits set by hand",
}
"""What the meter notes by itself."""
