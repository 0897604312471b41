"""Durable runs over HTTP: routes to mount into a service."""
