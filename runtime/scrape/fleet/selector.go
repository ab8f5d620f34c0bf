package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Example is a selector, for errors and help.
const Example = `job="vllm",cluster=~"eu-.*"`

// ParseMatch reads which targets are meant: matchers of labels as in PromQL, with commas between them, in braces or without. It returns them as
// PromQL has them, "" for all. The error says in one line what is wrong.
func ParseMatch(text string) (string, error) {
	rest := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		if rest, ok = strings.CutSuffix(inner, "}"); !ok {
			return "", fmt.Errorf("a brace is open: want something like %s", Example)
		}
		rest = strings.TrimSpace(rest)
	}
	var out []string
	for rest != "" {
		one, tail, err := matcher(rest)
		if err != nil {
			return "", err
		}
		out = append(out, one)
		rest = strings.TrimSpace(tail)
		if rest == "" {
			break
		}
		var comma bool
		if rest, comma = strings.CutPrefix(rest, ","); !comma {
			return "", fmt.Errorf("after %s comes %s: want a comma between matchers", one, quote(rest))
		}
		rest = strings.TrimSpace(rest)
	}
	return strings.Join(out, ","), nil
}

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
	comparison = regexp.MustCompile(`^(=~|!~|!=|=)`)
)

// matcher reads one matcher, and what follows it.
func matcher(text string) (one, rest string, err error) {
	name := labelName.FindString(text)
	if name == "" {
		return "", "", fmt.Errorf("%s is no label: want something like %s", quote(text), Example)
	}
	if name == "__name__" {
		return "", "", fmt.Errorf("__name__ is what llmtop asks for itself: want labels of targets, such as %s", Example)
	}
	rest = strings.TrimSpace(text[len(name):])
	op := comparison.FindString(rest)
	if op == "" {
		return "", "", fmt.Errorf("the label %s is compared with nothing: want something like %s", name, Example)
	}
	rest = strings.TrimSpace(rest[len(op):])
	quoted, err := strconv.QuotedPrefix(rest)
	value := ""
	if err == nil {
		value, err = strconv.Unquote(quoted)
	}
	if err != nil {
		return "", "", fmt.Errorf("the label %s is compared with what is not in double quotes: want something like %s", name, Example)
	}
	if strings.HasSuffix(op, "~") {
		if _, err := regexp.Compile("^(?:" + value + ")$"); err != nil {
			return "", "", fmt.Errorf("the label %s is matched with %s, which is no regular expression", name, quote(value))
		}
	}
	return name + op + strconv.Quote(value), rest[len(quoted):], nil
}

// quote is a text in quotes, of a long one the beginning.
func quote(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "…"
	}
	return strconv.Quote(text)
}

// selects is a vector selector of the given name, or of all names of a pattern, of the targets that match.
func selects(name, pattern, match string) string {
	var in []string
	if pattern != "" {
		in = append(in, "__name__=~"+strconv.Quote(pattern))
	}
	if match != "" {
		in = append(in, match)
	}
	return name + "{" + strings.Join(in, ",") + "}"
}
