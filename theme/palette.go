package theme

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

var palettes = []*Palette{dark(), light(), contrast(), colourBlind()}

// build makes a palette: colours by role from Background to SeriesWrite, colours derived from them, then the heat ramp
// through stops.
func build(name, means string, isDark bool, roles [AreaDecode]string, stops []string, ansi [Heat0]uint8, ansiHeat []uint8) *Palette {
	p := &Palette{Name: name, Means: means, Dark: isDark}
	for i, s := range roles {
		p.rgb[i] = hex(s)
	}
	copy(p.ansi[:], ansi[:])
	p.mixAreas()
	var points []RGB
	for _, s := range stops {
		points = append(points, hex(s))
	}
	copy(p.rgb[Heat0:], ramp(HeatLevels, points...))
	for i := range HeatLevels {
		p.ansi[int(Heat0)+i] = ansiHeat[i*len(ansiHeat)/HeatLevels]
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

// dark: cool greys on near black; the heat ramp follows inferno.
func dark() *Palette {
	return build("dark", "cool greys on near black", true, [AreaDecode]string{
		Background: "#0f1218", Border: "#343d4d", BorderFocus: "#6cb6ff", Title: "#c9d4e3", Text: "#b4bfcd", Dim: "#7f8b9b",
		Data: "#f4f7fb", Accent: "#6cb6ff", Good: "#6bd68b", Watch: "#f2bf4f", Bad: "#ff7069", OnBadge: "#0d1017",
		Select: "#1d2737", Cursor: "#6cb6ff", Track: "#232b38",
		PartLoad: "#6a7686", PartReceive: "#8f9cf5", PartQueue: "#f0c75e", PartPaced: "#b08a5a", PartTokenize: "#5ad1a5", PartEmbed: "#5fd3e8",
		PartPrompt: "#4b8df8", PartFirst: "#c58af9", PartToDevice: "#ff9e5e", PartFromDevice: "#f57fa8", PartSend: "#d1e05e", PartOther: "#a3adba",
		SeriesP50: "#5fd3e8", SeriesP99: "#f08bc3", SeriesDecode: "#7ddf9a", SeriesPrefill: "#6ea6ff",
		SeriesRead: "#5fd3e8", SeriesWrite: "#f0a35e",
	}, []string{"#171c27", "#2b1650", "#5d1b7a", "#932667", "#c73e4c", "#ee6a24", "#fba40a", "#f7f19b"},
		ansiDark, heatDark16)
}

// light: ink on paper; the heat ramp runs from paper to deep blue.
func light() *Palette {
	return build("light", "ink on paper", false, [AreaDecode]string{
		Background: "#fbfbf9", Border: "#cdd2d9", BorderFocus: "#0b62c4", Title: "#25303d", Text: "#3a4552", Dim: "#667180",
		Data: "#0b1017", Accent: "#0b62c4", Good: "#177a35", Watch: "#8f5a00", Bad: "#c4221d", OnBadge: "#ffffff",
		Select: "#e3ebf5", Cursor: "#b5148c", Track: "#e4e6e9",
		PartLoad: "#7d8896", PartReceive: "#5a62c8", PartQueue: "#b98500", PartPaced: "#7a5230", PartTokenize: "#12855f", PartEmbed: "#1590ab",
		PartPrompt: "#2467d6", PartFirst: "#8a3fd1", PartToDevice: "#cf5a10", PartFromDevice: "#c9376f", PartSend: "#6b7a00", PartOther: "#5c6570",
		SeriesP50: "#0a6f87", SeriesP99: "#b02a78", SeriesDecode: "#177a35", SeriesPrefill: "#1b5fc9",
		SeriesRead: "#0a6f87", SeriesWrite: "#a34a08",
	}, []string{"#eef0f2", "#cfe3ee", "#8cc4dc", "#479ccd", "#2171b5", "#1d4a94", "#16214d"},
		ansiLight, heatLight16)
}

// contrast: pure black and the strongest colours, all text at 7:1 or better.
func contrast() *Palette {
	return build("contrast", "pure black and the strongest colours", true, [AreaDecode]string{
		Background: "#000000", Border: "#8a8a8a", BorderFocus: "#ffff00", Title: "#ffffff", Text: "#ffffff", Dim: "#c8c8c8",
		Data: "#ffffff", Accent: "#ffff00", Good: "#40ff40", Watch: "#ffc000", Bad: "#ff8080", OnBadge: "#000000",
		Select: "#003a7a", Cursor: "#00ffff", Track: "#303030",
		PartLoad: "#8c8c8c", PartReceive: "#b0a0ff", PartQueue: "#ffe000", PartPaced: "#c8a064", PartTokenize: "#40ff40", PartEmbed: "#00ffff",
		PartPrompt: "#5c9dff", PartFirst: "#ff80ff", PartToDevice: "#ffa040", PartFromDevice: "#ff6090", PartSend: "#c0ff40", PartOther: "#ffffff",
		SeriesP50: "#00ffff", SeriesP99: "#ff9cff", SeriesDecode: "#40ff40", SeriesPrefill: "#8cbcff",
		SeriesRead: "#00ffff", SeriesWrite: "#ffb060",
	}, []string{"#141414", "#5a0000", "#b00000", "#ff3800", "#ff9a00", "#ffe600", "#ffffff"},
		ansiDark, heatDark16)
}

// colourBlind: Okabe-Ito for states and components, cividis for heat (Nuñez, Anderton and Renslow, 2018).
func colourBlind() *Palette {
	return build("colorblind", "colours that differ for everybody: Okabe-Ito and cividis", true, [AreaDecode]string{
		Background: "#10131a", Border: "#39414f", BorderFocus: "#56b4e9", Title: "#d5dbe4", Text: "#bcc4cf", Dim: "#858f9d",
		Data: "#f7f8fa", Accent: "#56b4e9", Good: "#56b4e9", Watch: "#f0e442", Bad: "#ff7f2a", OnBadge: "#0d1017",
		Select: "#1e2836", Cursor: "#56b4e9", Track: "#252c38",
		PartLoad: "#737d8a", PartReceive: "#9a8fd8", PartQueue: "#f0e442", PartPaced: "#a6812f", PartTokenize: "#009e73", PartEmbed: "#8fd3f5",
		PartPrompt: "#2f86c9", PartFirst: "#cc79a7", PartToDevice: "#e69f00", PartFromDevice: "#d55e00", PartSend: "#b5d46a", PartOther: "#c3c9d1",
		SeriesP50: "#56b4e9", SeriesP99: "#e69f00", SeriesDecode: "#1fbf90", SeriesPrefill: "#56b4e9",
		SeriesRead: "#56b4e9", SeriesWrite: "#e69f00",
	}, []string{"#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"},
		ansiDark, heatDark16)
}
