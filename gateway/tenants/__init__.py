"""Tenants: their plan, quota and status, what other rooms must hear of them, and what admins did."""
