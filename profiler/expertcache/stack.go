package expertcache

import "slices"

// stack yields the stack distances of a sequence of picks under one policy: a cache of n slots holds the top n entries,
// for each n at once (Mattson et al., 1970). A pick at distance d hits in caches of d slots or more.
type stack struct {
	order    []uint16 // experts, the top of the stack first
	priority []uint64 // of each expert, for LFU: the number of picks, then how recent the last one is
	time     uint64   // of the last pick, for LFU
}

// lru returns the distance of e, 0 for the first pick, and moves e to the top.
func (s *stack) lru(e uint16) int {
	at := slices.Index(s.order, e)
	if at < 0 {
		s.order = slices.Insert(s.order, 0, e)
		return 0
	}
	copy(s.order[1:at+1], s.order[:at])
	s.order[0] = e
	return at + 1
}

// Limits of a priority: the time is in the lower bits.
const (
	timeBits = 40
	onePick  = 1 << timeBits
)

// lfu returns the distance of e, 0 for the first pick, and moves e to the top. On its way down each entry stays or is
// replaced, by priority: a cache evicts the expert with the fewest picks so far, of equals the least recent one. It counts
// the picks of experts that it does not hold, too.
func (s *stack) lfu(e uint16) int {
	at := slices.Index(s.order, e)
	distance := at + 1
	if at < 0 {
		s.order = append(s.order, e)
		at = len(s.order) - 1
	}
	if at > 0 {
		carried := s.order[0]
		for i := 1; i < at; i++ {
			if other := s.order[i]; s.priority[other] < s.priority[carried] {
				s.order[i], carried = carried, other
			}
		}
		s.order[at], s.order[0] = carried, e
	}
	s.time++
	s.priority[e] = (s.priority[e]>>timeBits+1)*onePick | s.time
	return distance
}
