package engine

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Program describes the command line of an engine.
type Program struct {
	Kind   Kind
	Name   string // shown to users
	Port   uint16 // usual port; 0: none
	Closed bool   // no inference server: its ports are not tried

	names                []string // names of the executable, or of the script run by an interpreter
	prefix               bool     // the name may have a suffix, such as a version
	modules              []string // modules run by python -m
	subcommands          []string // required next argument, one of these; none: any
	portBy               []string // flags that set the port; nil: portFlag
	modelBy              []string // flags that set the model, the best name first; nil: modelFlag
	modelAfterSubcommand bool     // the argument after then is the model
}

var (
	portFlag  = []string{"--port"}
	modelFlag = []string{"--served-model-name", "--alias", "-a", "--model", "-m", "--model-path", "--model-id", "--hf-repo", "-hf"}
)

// UsualPorts returns the usual ports of all engines, each once.
func UsualPorts() (ports []uint16) {
	for _, e := range Engines {
		for _, p := range e.Programs {
			if p.Port != 0 && !slices.Contains(ports, p.Port) {
				ports = append(ports, p.Port)
			}
		}
	}
	return ports
}

// Recognise returns the program of a command line and the arguments after it, or nil.
func Recognise(args []string) (*Program, []string) {
	if len(args) == 0 {
		return nil, nil
	}
	if p, rest := match(Base(args[0]), args[1:], (*Program).named); p != nil || !interpreter(args[0]) {
		return p, rest
	}
	for at := 1; at < len(args); at++ {
		switch arg := args[at]; {
		case arg == "-m" && at+1 < len(args):
			return match(args[at+1], args[at+2:], func(p *Program, name string) bool { return slices.Contains(p.modules, name) })
		case arg == "-c":
			return nil, nil
		case arg == "-X", arg == "-W": // these take a value
			at++
		case !strings.HasPrefix(arg, "-"):
			return match(Base(arg), args[at+1:], (*Program).named)
		}
	}
	return nil, nil
}

func match(name string, rest []string, is func(*Program, string) bool) (*Program, []string) {
	for _, e := range Engines {
		for i := range e.Programs {
			if p := &e.Programs[i]; is(p, name) && (len(p.subcommands) == 0 || len(rest) > 0 && slices.Contains(p.subcommands, rest[0])) {
				return p, rest
			}
		}
	}
	return nil, nil
}

// named reports whether name is the file name of the program.
func (p *Program) named(name string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		return name == n || p.prefix && strings.HasPrefix(name, n)
	})
}

// Base returns the name of a program's file without its extension.
func Base(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if strings.HasSuffix(name, ".llamafile") {
		return "llamafile"
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".py")
}

// interpreter reports whether a program runs a script that its arguments name.
func interpreter(file string) bool {
	name := Base(file)
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || name == "ape"
}

// flag returns the value of the first of the named flags that is set, as "--flag value" or "--flag=value".
func flag(args []string, names ...string) string {
	for _, name := range names {
		for i, arg := range args {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// ConfiguredPort returns the port that the arguments set, or 0.
func (p *Program) ConfiguredPort(args []string) uint16 {
	n, err := strconv.ParseUint(flag(args, p.portBy...), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// Model returns the model that the arguments name, "" if none; for a file without its folder.
func (p *Program) Model(args []string) string {
	name := flag(args, p.modelBy...)
	if name == "" && p.modelAfterSubcommand && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name = args[1]
	}
	return FileName(name)
}

// FileName returns a model's name. If it is a path, it removes the folder.
func FileName(name string) string {
	if strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, "/") || strings.Contains(name, `\`) {
		return path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	return name
}
