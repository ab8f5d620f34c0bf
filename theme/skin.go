package theme

import (
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// Skin is a palette prepared for one terminal: the SGR parameters of every role.
type Skin struct {
	Palette *Palette
	Profile Profile
	Glyphs  *Glyphs
	fg, bg  [NumRoles]string
	onHeat  [HeatLevels]Role
}

// NewSkin prepares a palette for a profile and a glyph set.
func NewSkin(p *Palette, profile Profile, g *Glyphs) *Skin {
	s := &Skin{Palette: p, Profile: profile, Glyphs: g}
	for r := range Role(NumRoles) {
		s.fg[r], s.bg[r] = p.sgr(r, profile, false), p.sgr(r, profile, true)
	}
	for i := range s.onHeat {
		s.onHeat[i] = p.readable(Heat0+Role(i), profile)
	}
	return s
}

// readable returns the more readable of OnBadge and Data on a background.
func (p *Palette) readable(bg Role, profile Profile) Role {
	back := p.Shown(bg, profile)
	if Contrast(p.Shown(OnBadge, profile), back) > Contrast(p.Shown(Data, profile), back) {
		return OnBadge
	}
	return Data
}

// OnHeat returns the role for text on a level of the heat ramp.
func (s *Skin) OnHeat(level Role) Role { return s.onHeat[level-Heat0] }

// Foreground returns the SGR parameters of a role without the escape, "" in a profile without colour.
func (s *Skin) Foreground(r Role) string { return s.fg[r] }

// Background is like Foreground, for the cell's background.
func (s *Skin) Background(r Role) string { return s.bg[r] }

// Colour reports whether the terminal shows colours.
func (s *Skin) Colour() bool { return s.Profile != NoColour }

// Shown returns the colour that a terminal of this profile displays for a role, with the usual values of the 16- and
// 256-colour tables. Tests use it to measure contrast.
func (p *Palette) Shown(r Role, profile Profile) RGB {
	switch profile {
	case TrueColour:
		return p.rgb[r]
	case Colours256:
		return fromColour(ansi.Convert256(p.rgb[r]).RGBA())
	default:
		return fromColour(ansi.BasicColor(p.ansi[r]).RGBA())
	}
}

func fromColour(r, g, b, _ uint32) RGB { return RGB{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)} }

func (p *Palette) sgr(r Role, profile Profile, back bool) string {
	lead := "38"
	if back {
		lead = "48"
	}
	switch profile {
	case TrueColour:
		c := p.rgb[r]
		return lead + ";2;" + strconv.Itoa(int(c.R)) + ";" + strconv.Itoa(int(c.G)) + ";" + strconv.Itoa(int(c.B))
	case Colours256:
		return lead + ";5;" + strconv.Itoa(int(ansi.Convert256(p.rgb[r])))
	case Colours16:
		return basic(int(p.ansi[r]), back)
	default:
		return ""
	}
}

// basic returns the SGR parameter of one of the 16 colours.
func basic(i int, back bool) string {
	base := 30
	if i >= 8 {
		base, i = 90, i-8
	}
	if back {
		base += 10
	}
	return strconv.Itoa(base + i)
}
