"""Readers of office documents."""
