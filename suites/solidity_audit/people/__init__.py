"""What people are asked of an audit, and what their answers become."""
