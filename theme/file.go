package theme

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// roleNames are the names of the roles in theme files.
var roleNames = [AreaDecode]string{
	"background", "border", "border-focus", "title", "text", "dim", "data", "accent", "good", "watch", "bad", "on-badge", "select", "cursor", "track",
	"part-load", "part-receive", "part-queue", "part-paced", "part-tokenize", "part-embed", "part-prompt", "part-first",
	"part-to-device", "part-from-device", "part-send", "part-other",
	"series-p50", "series-p99", "series-decode", "series-prefill", "series-read", "series-write",
}

// maxStops bounds the colours of a heat ramp in a theme file; more than HeatLevels have no effect.
const maxStops = HeatLevels

// Parse parses a theme file: colours "#rrggbb" by role, "heat" with the colours of the heat ramp from cold to hot, and
// "base", the built-in theme that has all others. Terminals with 16 colours show those of the base. The error names the
// key.
func Parse(name string, text []byte) (*Palette, error) {
	values := map[string]any{}
	if _, err := toml.Decode(string(text), &values); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(line)
	}
	base := "dark"
	if v, ok := values["base"]; ok {
		base, _ = v.(string)
	}
	from, ok := ByName(base)
	if !ok {
		return nil, fmt.Errorf("base: must be one of %s", strings.Join(Names(Palettes()), ", "))
	}
	delete(values, "base")
	p := *from
	p.Name, p.Means = name, "your theme, based on "+base
	if err := p.read(values); err != nil {
		return nil, err
	}
	return &p, nil
}

// read sets the keys of a theme file, and derives the other colours from them.
func (p *Palette) read(values map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := p.set(key, values[key]); err != nil {
			return err
		}
	}
	p.Dark = Contrast(p.rgb[Background], RGB{}) < Contrast(p.rgb[Background], RGB{255, 255, 255})
	p.mixAreas()
	return nil
}

// set sets a key of a theme file.
func (p *Palette) set(key string, v any) (err error) {
	if key == "heat" {
		list, ok := v.([]any)
		if !ok || len(list) < 2 || len(list) > maxStops {
			return fmt.Errorf(`heat: must be a list of 2 to %d colours, as in heat = ["#000000", "#ffffff"]`, maxStops)
		}
		stops := make([]RGB, len(list))
		for i := range list {
			if stops[i], err = colourOf("heat", list[i]); err != nil {
				return err
			}
		}
		copy(p.rgb[Heat0:], ramp(HeatLevels, stops...))
		return nil
	}
	i := slices.Index(roleNames[:], key)
	if i < 0 {
		return fmt.Errorf("unknown key %.40q: a theme has base, heat, and colours such as text, accent or series-p50", key)
	}
	p.rgb[i], err = colourOf(key, v)
	return err
}

// colourOf parses the colour of a key.
func colourOf(key string, v any) (RGB, error) {
	text, _ := v.(string)
	digits, ok := strings.CutPrefix(text, "#")
	n, err := strconv.ParseUint(digits, 16, 24)
	if !ok || len(digits) != 6 || err != nil {
		return RGB{}, fmt.Errorf("%s: must be a colour like \"#6cb6ff\"", key)
	}
	return RGB{uint8(n >> 16), uint8(n >> 8), uint8(n)}, nil
}
