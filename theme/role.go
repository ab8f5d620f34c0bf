package theme

// Role is the purpose of a colour. Panes use roles, palettes map them to colours.
type Role uint8

// HeatLevels is the number of steps of the heat ramp.
const HeatLevels = 32

// GradeLevels is the number of steps from the background to the colour of a series.
const GradeLevels = 8

// The roles.
const (
	Background Role = iota
	Border
	BorderFocus
	Title
	Text
	Dim
	Data // brightest: the numbers
	Accent
	Good
	Watch
	Bad
	OnBadge // text on a background of Accent, Good, Watch or Bad
	Select  // background of a selected row
	Cursor  // selected cell of a heat map, under OnBadge: no colour of the heat ramp
	Track   // empty part of a gauge
	PartLoad
	PartReceive
	PartQueue
	PartPaced
	PartTokenize
	PartEmbed
	PartPrompt
	PartFirst
	PartToDevice
	PartFromDevice
	PartSend
	PartOther
	SeriesP50
	SeriesP99
	SeriesDecode
	SeriesPrefill
	SeriesRead
	SeriesWrite
	AreaDecode                                                   // below the line of a filled curve
	AreaPrefill                                                  // below the line of a filled curve
	Grade0                                                       // GradeLevels roles of each series from here, dark to full
	Heat0       = Grade0 + GradeLevels*(SeriesWrite-SeriesP50+1) // HeatLevels roles from here, cold to hot
	NumRoles    = Heat0 + HeatLevels
)

// Grade returns the role of a series at a share of its brightness, clamped to 0..1. Other roles have no grades.
func Grade(r Role, share float64) Role {
	if r < SeriesP50 || r > SeriesWrite {
		return r
	}
	if !(share > 0) {
		share = 0
	}
	return Grade0 + (r-SeriesP50)*GradeLevels + Role(min(share, 1)*(GradeLevels-1)+0.5)
}

// Heat returns the role for a share of the scale, clamped to 0..1.
func Heat(share float64) Role {
	if !(share > 0) {
		return Heat0
	}
	return Heat0 + Role(min(share, 1)*(HeatLevels-1)+0.5)
}

// PartRoles returns the roles of the TTFT components in drawing order.
func PartRoles() []Role {
	return []Role{
		PartLoad, PartReceive, PartQueue, PartPaced, PartTokenize, PartEmbed, PartPrompt, PartFirst, PartToDevice, PartFromDevice,
		PartSend, PartOther,
	}
}
