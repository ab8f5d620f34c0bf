package metric

// Share is part / whole, held to 0..1; 0 where the whole is not positive.
func Share(part, whole float64) float64 {
	if !(whole > 0) || !(part > 0) {
		return 0
	}
	if part >= whole {
		return 1
	}
	return part / whole
}
