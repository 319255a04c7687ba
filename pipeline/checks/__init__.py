"""What `yarnstick doctor` looks at, by subject; each check is a function that says what it found."""
