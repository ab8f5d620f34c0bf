package theme

import (
	"embed"

	"github.com/BurntSushi/toml"
)

// Palette maps every role to a colour: RGB, and an index for terminals with 16 colours, whose actual colours the user
// has configured.
type Palette struct {
	Name  string
	Means string // what it is for, in a few words
	rgb   [NumRoles]RGB
	ansi  [NumRoles]uint8
	Dark  bool
}

// RGB returns the colour of a role.
func (p *Palette) RGB(r Role) RGB { return p.rgb[r] }

// Palettes returns the themes in the order in which the theme key cycles through them.
func Palettes() []*Palette { return palettes }

// ByName returns the theme with a name, or false if absent.
func ByName(name string) (*Palette, bool) {
	for _, p := range palettes {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// Names returns the names of themes.
func Names(of []*Palette) []string {
	var out []string
	for _, p := range of {
		out = append(out, p.Name)
	}
	return out
}

//go:embed themes/*.toml
var themes embed.FS

// palettes are the built-in themes, which are files like those of the user.
var palettes = []*Palette{
	builtIn("dark", "cool greys on near black", &ansiDark, heatDark16),
	builtIn("light", "ink on paper", &ansiLight, heatLight16),
	builtIn("contrast", "pure black and the strongest colours", &ansiDark, heatDark16),
	builtIn("colorblind", "colours that differ for everybody: Okabe-Ito and cividis", &ansiDark, heatDark16),
}

// builtIn reads a built-in theme. ansi and heat are its colours of terminals with 16.
func builtIn(name, means string, ansi *[Heat0]uint8, heat []uint8) *Palette {
	p := &Palette{Name: name, Means: means}
	copy(p.ansi[:], ansi[:])
	for i := range HeatLevels {
		p.ansi[int(Heat0)+i] = heat[i*len(heat)/HeatLevels]
	}
	values := map[string]any{}
	_, err := toml.DecodeFS(themes, "themes/"+name+".toml", &values)
	if err == nil {
		err = p.read(values)
	}
	if err != nil {
		panic("theme: read " + name + ": " + err.Error())
	}
	return p
}

// mixAreas derives the colours of areas and the grades of series from those of their lines.
func (p *Palette) mixAreas() {
	p.rgb[AreaDecode] = mix(p.rgb[Background], p.rgb[SeriesDecode], 0.3)
	p.rgb[AreaPrefill] = mix(p.rgb[Background], p.rgb[SeriesPrefill], 0.3)
	for r := SeriesP50; r <= SeriesWrite; r++ {
		for i := range Role(GradeLevels) {
			at := Grade0 + (r-SeriesP50)*GradeLevels + i
			p.rgb[at] = mix(p.rgb[Background], p.rgb[r], 0.3+0.7*float64(i)/(GradeLevels-1))
			p.ansi[at] = p.ansi[r]
		}
	}
}

// ansiDark and ansiLight are the 16-colour indices by role; states differ by hue and glyph.
var (
	ansiDark = [Heat0]uint8{
		Background: 0, Border: 8, BorderFocus: 14, Title: 15, Text: 7, Dim: 8, Data: 15, Accent: 14,
		Good: 10, Watch: 11, Bad: 9, OnBadge: 0, Select: 4, Cursor: 14, Track: 8,
		PartLoad: 7, PartReceive: 4, PartQueue: 11, PartPaced: 2, PartTokenize: 10, PartEmbed: 14, PartPrompt: 12, PartFirst: 13,
		PartToDevice: 3, PartFromDevice: 6, PartSend: 5, PartOther: 8,
		SeriesP50: 14, SeriesP99: 13, SeriesDecode: 10, SeriesPrefill: 14, SeriesRead: 14, SeriesWrite: 13, AreaDecode: 2, AreaPrefill: 4,
	}
	ansiLight = [Heat0]uint8{
		Background: 15, Border: 7, BorderFocus: 4, Title: 0, Text: 0, Dim: 0, Data: 4, Accent: 4,
		Good: 2, Watch: 5, Bad: 1, OnBadge: 15, Select: 7, Cursor: 1, Track: 7,
		PartLoad: 8, PartReceive: 10, PartQueue: 3, PartPaced: 13, PartTokenize: 2, PartEmbed: 6, PartPrompt: 4, PartFirst: 5,
		PartToDevice: 1, PartFromDevice: 12, PartSend: 9, PartOther: 7,
		SeriesP50: 4, SeriesP99: 5, SeriesDecode: 2, SeriesPrefill: 4, SeriesRead: 4, SeriesWrite: 5, AreaDecode: 10, AreaPrefill: 14,
	}
	heatDark16  = []uint8{0, 4, 5, 1, 9, 3, 11, 15}
	heatLight16 = []uint8{15, 14, 6, 12, 4, 5, 0}
)
