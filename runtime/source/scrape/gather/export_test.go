package gather

// For the tests, which stand outside because the engines' tables do.
const (
	MaxSeries    = maxSeries
	HeldTexts    = heldTexts
	SettledTexts = settledTexts
)
