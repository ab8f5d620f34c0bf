package pane

import (
	"github.com/llmtop/llmtop/theme"
)

func Shade(share, top float64, gl *theme.Glyphs) rune {
	if top <= 0 || share <= 0 {
		return gl.Shades[0]
	}
	n := len(gl.Shades) - 1
	return gl.Shades[min(1+int(share/top*float64(n-1)+0.5), n)]
}
