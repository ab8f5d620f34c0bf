package capture

// list is a doubly linked list whose nodes stand in what it lists.
type list[T any] struct {
	front, back *node[T]
	n           int
}

// node is a place in a list.
type node[T any] struct {
	prev, next *node[T]
	list       *list[T] // nil: in none
	value      *T
}

// pushBack adds a node that is in no list.
func (l *list[T]) pushBack(n *node[T]) {
	n.list, n.prev, n.next = l, l.back, nil
	if l.back != nil {
		l.back.next = n
	} else {
		l.front = n
	}
	l.back = n
	l.n++
}

// remove removes a node. l may be nil.
func (l *list[T]) remove(n *node[T]) {
	if l == nil {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.front = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.back = n.prev
	}
	n.prev, n.next, n.list = nil, nil, nil
	l.n--
}

// moveToBack makes a node the last.
func (l *list[T]) moveToBack(n *node[T]) {
	if l.back != n {
		l.remove(n)
		l.pushBack(n)
	}
}
