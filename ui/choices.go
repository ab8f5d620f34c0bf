package ui

// Choices holds the user's choices on the screen under their displayed names, for the next session. An empty or unknown
// value keeps the default. The view is not stored: the screen always starts with the overview.
type Choices struct {
	Theme   string `json:"theme,omitempty"`
	Window  string `json:"window,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Sort    string `json:"sort,omitempty"` // column of the requests table
	Reverse bool   `json:"reverse,omitempty"`
}
