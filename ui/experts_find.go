package ui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/store"
)

// findSyntax is how experts are looked for.
const findSyntax = "L5, e12, 5:12, hot, idle, L5 hot"

// find is what is looked for: experts of a layer, of a number, or of both, -1 for any.
type find struct {
	layer, expert int
	idle          bool // those that were not picked; else the most picked come first
}

// parseFind reads what has been typed.
func parseFind(text string) (q find, err error) {
	q = find{-1, -1, false}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		switch layer, expert, both := strings.Cut(word, ":"); {
		case word == "hot":
		case word == "idle" || word == "dead":
			q.idle = true
		case both:
			q.layer, err = number(strings.TrimPrefix(layer, "l"), word)
			if err == nil {
				q.expert, err = number(strings.TrimPrefix(expert, "e"), word)
			}
		case strings.HasPrefix(word, "l"):
			q.layer, err = number(word[1:], word)
		case strings.HasPrefix(word, "e"):
			q.expert, err = number(word[1:], word)
		default:
			err = fmt.Errorf("find %q: want %s", word, findSyntax)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func number(digits, word string) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return -1, fmt.Errorf("find %q: want %s", word, findSyntax)
	}
	return int(n), nil
}

// cells are the experts that are meant, those with the largest share of their layer's picks first, of equals the one nearest to the beginning.
func (q find) cells(x *store.Experts, h *store.Hits) ([]cell, error) {
	switch {
	case x == nil || h == nil:
		return nil, errors.New("find expert: there are no picks")
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
