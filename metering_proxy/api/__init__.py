"""Routes of the control listener, for services that show the service secret. Tenants never reach it."""
