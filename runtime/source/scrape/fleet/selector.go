package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Example is a selector for errors and help.
const Example = `job="vllm",cluster=~"eu-.*"`

// ParseMatch parses label matchers in PromQL syntax, separated by commas, with or without braces. It returns them in
// normal form; "" for all targets. Errors are one line.
func ParseMatch(text string) (string, error) {
	rest := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		if rest, ok = strings.CutSuffix(inner, "}"); !ok {
			return "", fmt.Errorf("missing closing brace: write for example %s", Example)
		}
		rest = strings.TrimSpace(rest)
	}
	var out []string
	for rest != "" {
		one, tail, err := parseMatcher(rest)
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
			return "", fmt.Errorf("unexpected %[2]s after %[1]s: separate matchers by a comma", one, quote(rest))
		}
		rest = strings.TrimSpace(rest)
	}
	return strings.Join(out, ","), nil
}

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*`)
	comparison = regexp.MustCompile(`^(=~|!~|!=|=)`)
)

// parseMatcher parses one matcher and returns the rest of the text.
func parseMatcher(text string) (one, rest string, err error) {
	name := labelName.FindString(text)
	if name == "" {
		return "", "", fmt.Errorf("%s is not a label name: write for example %s", quote(text), Example)
	}
	if name == "__name__" {
		return "", "", fmt.Errorf("llmtop sets __name__ itself: use labels of targets, for example %s", Example)
	}
	rest = strings.TrimSpace(text[len(name):])
	op := comparison.FindString(rest)
	if op == "" {
		return "", "", fmt.Errorf("no operator after label %s: write for example %s", name, Example)
	}
	rest = strings.TrimSpace(rest[len(op):])
	quoted, err := strconv.QuotedPrefix(rest)
	value := ""
	if err == nil {
		value, err = strconv.Unquote(quoted)
	}
	if err != nil {
		return "", "", fmt.Errorf("the value of label %s is not in double quotes: write for example %s", name, Example)
	}
	if strings.HasSuffix(op, "~") {
		if _, err := regexp.Compile("^(?:" + value + ")$"); err != nil {
			return "", "", fmt.Errorf("the value of label %s is not a valid regular expression: %s", name, quote(value))
		}
	}
	return name + op + strconv.Quote(value), rest[len(quoted):], nil
}

// quote returns a quoted text, truncated to 40 characters.
func quote(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "…"
	}
	return strconv.Quote(text)
}

// selector returns a vector selector for a name, or a pattern of names, of the selected targets.
func selector(name, pattern, match string) string {
	var in []string
	if pattern != "" {
		in = append(in, "__name__=~"+strconv.Quote(pattern))
	}
	if match != "" {
		in = append(in, match)
	}
	return name + "{" + strings.Join(in, ",") + "}"
}
