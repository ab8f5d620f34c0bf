package table

import "github.com/llmtop/llmtop/profiler/store"

// Selection is the request that the user looks at: the newest one while Follow is true, otherwise the one of Key.
type Selection struct {
	Follow bool
	Key    Key
}

// Request returns the selected request, or nil.
func (x *Selection) Request(s *store.Snapshot) *store.Request {
	if x.Follow {
		return s.Current
	}
	for _, list := range [...][]*store.Request{s.Requests, s.Earlier} {
		for _, r := range list {
			if KeyOf(r) == x.Key {
				return r
			}
		}
	}
	return nil
}
