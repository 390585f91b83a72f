"""What subjects and judges are asked."""
