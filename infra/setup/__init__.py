"""Preparing a machine: the venv, the pages' build, images, system packages for the tests.

Standard library only, because this runs before anything is installed. Nothing of the services
lives here, and no service imports it.
"""
