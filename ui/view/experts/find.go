package experts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/store"
)

// findSyntax shows how to search for experts.
const findSyntax = "L5, e12, 5:12, hot, idle, L5 hot"

// query selects experts by layer and number; -1 matches any.
type query struct {
	layer, expert int
	idle          bool // only experts without picks; otherwise the most picked come first
}

// parseFind parses the search text.
func parseFind(text string) (q query, err error) {
	q = query{-1, -1, false}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		switch layer, expert, both := strings.Cut(word, ":"); {
		case word == "hot":
		case word == "idle" || word == "dead":
			q.idle = true
		case both:
			q.layer, err = parseIndex(strings.TrimPrefix(layer, "l"), word)
			if err == nil {
				q.expert, err = parseIndex(strings.TrimPrefix(expert, "e"), word)
			}
		case strings.HasPrefix(word, "l"):
			q.layer, err = parseIndex(word[1:], word)
		case strings.HasPrefix(word, "e"):
			q.expert, err = parseIndex(word[1:], word)
		default:
			err = fmt.Errorf("find %q: want %s", word, findSyntax)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func parseIndex(digits, word string) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return -1, fmt.Errorf("find %q: want %s", word, findSyntax)
	}
	return int(n), nil
}

// cell is one expert in one layer.
type cell struct{ layer, expert int }

// cells returns the matching experts, those with the largest share of their layer's picks first. Equal shares keep the
// order of layer and expert.
func (q query) cells(x *store.Experts, h *store.Hits) ([]cell, error) {
	switch {
	case x == nil || h == nil:
		return nil, errors.New("find expert: no router picks yet")
	case q.layer >= x.Layers:
		return nil, fmt.Errorf("find layer %d: the model has L0 to L%d", q.layer, x.Layers-1)
	case q.expert >= x.Experts:
		return nil, fmt.Errorf("find expert %d: a layer has e0 to e%d", q.expert, x.Experts-1)
	}
	var out []cell
	share := func(c cell) float64 {
		return float64(h.Counts[c.layer*x.Experts+c.expert]) / float64(max(h.Layers[c.layer].Total, 1))
	}
	for l := range x.Layers {
		for e := range x.Experts {
			c := cell{l, e}
			if (q.layer < 0 || q.layer == l) && (q.expert < 0 || q.expert == e) && (!q.idle || share(c) == 0) {
				out = append(out, c)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("find idle experts: all were picked")
	}
	slices.SortStableFunc(out, func(a, b cell) int { return cmp.Compare(share(b), share(a)) })
	return out, nil
}
