package theme

import (
	"image/color"
	"strings"

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
		if c := p.colour(r, profile); c != nil {
			s.fg[r] = strings.Join(ansi.Style{}.ForegroundColor(c), ";")
			s.bg[r] = strings.Join(ansi.Style{}.BackgroundColor(c), ";")
		}
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
	red, green, blue, _ := p.colour(r, max(profile, Colours16)).RGBA()
	return RGB{uint8(red >> 8), uint8(green >> 8), uint8(blue >> 8)}
}

// colour returns the colour of a role in a profile, nil in one without colour.
func (p *Palette) colour(r Role, profile Profile) color.Color {
	switch profile {
	case NoColour:
		return nil
	case Colours16: // chosen for each role, not converted
		return ansi.BasicColor(p.ansi[r])
	}
	return profile.Terminal().Convert(p.rgb[r])
}
