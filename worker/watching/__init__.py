"""What others see of a worker: logs, metrics, its status, pages; processing knows nothing of it."""
