package answers

import "github.com/llmtop/llmtop/profiler/event"

// MaxChoices is how many choices of a request are counted apart.
const MaxChoices = 128

// Counter counts the tokens of one answer. The zero value is ready.
type Counter struct {
	choices           []counted
	guessed           bool // a message with text had no token count
	joined            bool // the beginning of the answer was not received
	missing           int  // tokens before the first message that was, as far as a running count shows
	answer, reasoning int  // pieces of all choices
}

// counted counts one of the answers.
type counted struct {
	tokens                   int
	first                    event.Time // when its first message was read
	firstTokens, firstPieces int        // of what was read then
	answered                 bool       // it has text that is no reasoning
	answerPieces             int        // of the first message with such text
}

// Add counts a part and returns how many tokens of its choice are new, and how many came before. These are its token ids or
// log probabilities, or the growth of the server's running count, which is one of that choice, or else 1. total is that
// count in the same message; 0: none.
func (c *Counter) Add(p *Part, total int) (n, before int) {
	i := min(p.Choice, MaxChoices-1)
	for len(c.choices) <= i {
		c.choices = append(c.choices, counted{})
	}
	one := &c.choices[i]
	n, before = 1, one.tokens
	if c.joined && total > 0 {
		if c.joined = false; !c.guessed {
			c.missing = max(total-before-max(p.Tokens, 1), 0)
		}
	}
	if total > 0 {
		total = max(total-c.missing, 1)
	}
	switch {
	case p.Tokens > 0:
		n = p.Tokens
	case total == 0 || c.guessed: // a total in the last message does not count this message
		c.guessed = true
	case total > before:
		n = total - before
	case before > 0:
		n = 0 // more text of a token already counted
	}
	if one.first == 0 {
		one.first = p.At
	}
	if one.first == p.At {
		one.firstTokens, one.firstPieces = one.firstTokens+n, one.firstPieces+p.Answer+p.Reasoning
	}
	if p.Answer > 0 && !one.answered {
		one.answered, one.answerPieces = true, p.Answer
	}
	one.tokens = before + n
	c.answer, c.reasoning = c.answer+p.Answer, c.reasoning+p.Reasoning
	return n, before
}

// marks is how many tokens of a choice may be missing in its messages: those that begin and end reasoning and text have none.
const marks = 8

// Reasoning returns how many tokens are reasoning, and how many of the answer were streamed after its first message; 0 for
// what the token events say. false: they are unknown. generated and reasoning are the server's totals; 0: not reported.
func (c *Counter) Reasoning(generated, reasoning int) (n, answered int, ok bool) {
	counted, most := c.Total(), marks*len(c.choices)
	switch {
	case c.reasoning == 0 || !c.guessed || generated == 0, generated >= counted && generated-counted <= max(most, counted/32):
		return reasoning, 0, true
	case reasoning == 0 || len(c.choices) > 1 || !c.plausible(reasoning, generated, counted):
		return reasoning, 0, false
	}
	one := &c.choices[0]
	rest := generated - reasoning
	return reasoning, max(rest-(rest*one.answerPieces+c.answer/2)/max(c.answer, 1), 0), true
}

// Total returns the number of tokens so far.
func (c *Counter) Total() (n int) {
	for i := range c.choices {
		n += c.choices[i].tokens
	}
	return n
}

// Choices returns how many answers there are.
func (c *Counter) Choices() int { return len(c.choices) }

// Later returns how many tokens were streamed after the first message of each choice; false if that is unknown. generated
// and reasoning are the server's totals, with the reasoning in the first too; 0: not reported. If messages had no count, the
// total counts them, without the reasoning that the server reports if none was streamed. Far more tokens
// than the text can have are tokens that were not streamed, far fewer than messages are messages that are no tokens: then it
// is unknown.
func (c *Counter) Later(generated, reasoning int) (n int, ok bool) {
	var first, firstPieces int
	for i := range c.choices {
		first, firstPieces = first+c.choices[i].firstTokens, firstPieces+c.choices[i].firstPieces
	}
	counted := c.Total()
	n = generated
	if c.reasoning == 0 {
		n -= reasoning
	}
	switch {
	case !c.guessed && n-counted > len(c.choices), len(c.choices) > 1 && n < counted, generated == 0:
		return counted - first, true // the total is missing, or of one choice, or not only of what was streamed
	case !c.guessed, n >= counted && n-counted <= len(c.choices): // the token that ends a text has no message
		return max(n, counted) - first, true
	case !c.plausible(reasoning, n, counted):
		return 0, false
	case n > counted: // messages hold several tokens: the first ones by their share of the text
		pieces := c.answer + c.reasoning
		first = (n*firstPieces + pieces/2) / max(pieces, 1)
	}
	return max(n-first, 0), true
}

// plausible reports whether the messages can hold n tokens, and their text the tokens of each kind.
func (c *Counter) plausible(reasoning, n, messages int) bool {
	fits := func(tokens, pieces int) bool { return tokens-pieces <= max(pieces/4, 2) }
	switch {
	case messages-n > max(n/4, 2):
		return false
	case c.reasoning == 0 || reasoning == 0:
		return fits(n, c.answer+c.reasoning)
	}
	return fits(reasoning, c.reasoning) && fits(n-reasoning, c.answer)
}
