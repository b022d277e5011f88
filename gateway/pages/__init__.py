"""Every page that the gateway renders. What a template is given is written in gateway/templates/README.md."""

from gateway.pages.environment import environment

__all__ = ["environment"]
