"""An installation: one data folder, its settings, its databases and its backups."""
