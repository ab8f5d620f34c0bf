package pane

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Component is the name and the look of a TTFT component.
type Component struct {
	Role theme.Role
	Name string
	Fill int // index into Glyphs.Fills
}

// ComponentLook returns the look of a TTFT component; any other stage is "other".
func ComponentLook(st event.Stage) Component {
	for i, s := range event.Components() {
		if s == st {
			return Component{theme.PartRoles()[i], PartName(i), i}
		}
	}
	return Component{theme.PartOther, PartName(otherPart), otherPart}
}

// otherPart is the index of the rest of TTFT, after all components.
const otherPart = len(store.Components) - 1

// WithTTFT returns the newest request with a first token, or nil.
func WithTTFT(rs []*store.Request) *store.Request {
	for _, r := range rs {
		if r.TTFT.OK() {
			return r
		}
	}
	return nil
}

// DrawStack draws the components of a request's TTFT; top seconds fill the width.
func DrawStack(a grid.Area, f *Frame, y int, r *store.Request, top float64) {
	var segs []grid.Seg
	for _, p := range r.Parts {
		k := ComponentLook(p.Stage)
		segs = append(segs, grid.Seg{Share: p.Dur.Seconds() / top, Role: k.Role, Fill: f.Skin.Glyphs.Fills[k.Fill]})
	}
	if len(segs) == 0 {
		segs = append(segs, grid.Seg{Share: r.TTFT.V / top, Role: theme.PartOther, Fill: f.Skin.Glyphs.Fills[otherPart]})
	}
	a.Stack(0, y, a.W, segs, f.Skin.Colour(), f.Skin.Glyphs)
}

// PartName returns the short name of the i-th component.
func PartName(i int) string { return store.Components[i].Title }
