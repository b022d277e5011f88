"""What every request passes before a route sees it: guards, origin, session, CSRF, headers, errors."""
