package proxy

import "github.com/llmtop/llmtop/runtime/source/prompts"

// Bounds of the request bodies whose prompts are compared with earlier ones, in bytes.
const (
	maxCompared = 1 << 20  // of one request
	maxHeld     = 64 << 20 // of all requests that are not compared yet
)

// hold adds to the text that is compared. The caller holds mu.
func (x *exchange) hold(body []byte) {
	if x.long {
		return
	}
	held := &x.proxy.held
	x.text = append(x.text, body...)
	if held.Add(int64(len(body))) > maxHeld || len(x.text) > maxCompared {
		held.Add(-int64(len(x.text)))
		x.text, x.long = nil, true
	}
}

// compare compares the prompt with earlier ones on another goroutine, which drops its text. The caller holds mu.
func (x *exchange) compare() {
	text, model := x.text, x.model
	if x.text = nil; len(text) == 0 {
		return
	}
	x.prompt = make(chan *prompts.Print, 1)
	x.proxy.observers.Go(func() {
		defer x.proxy.held.Add(-int64(len(text)))
		x.prompt <- x.proxy.prompts.Compare(model, func() []prompts.Unit {
			units, err := prompts.Units(text)
			if err != nil {
				return nil
			}
			return units
		})
	})
}
