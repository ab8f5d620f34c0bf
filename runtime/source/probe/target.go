package probe

import (
	"errors"

	"github.com/llmtop/llmtop/runtime/host"
)

// Symbol is a function found in a process.
type Symbol struct {
	Name    string
	Purpose string
	File    string // name of the file in the process's view; "" if the function was not found
	Refused string // why it is not probed although it was found; "": it is
	path    string // opens the file

	entry, back string // programs at its entry and its return, of a function of CUDA; "": none
}

// Target is a process that links llama.cpp, or computes with CUDA.
type Target struct {
	host.ID
	Program string
	Model   string   // path of the GGUF file that it maps or has open, "" unknown
	Version string   // of llama.cpp, such as b6000; "" unknown
	BuildID string   // of the file that has llama_decode, "" unknown
	Symbols []Symbol // of llama.cpp; none: it does not link llama.cpp
	CUDA    []Symbol
	model   string // opens the file
	facts   facts
	starts  bool   // it has not opened its GPU yet
	experts bool   // options of llama.cpp put experts on the CPU
	device  bool   // a GPU may compute passes, so that llama_decode returns before they end
	gpu     string // that the process has open; "": unknown
}

// facts are what the files of a process say about its llama.cpp.
type facts struct {
	tensor    tensorLayout
	build     int  // number of llama.cpp's build; 0: unknown
	noSymbols bool // a table of symbols of the program was removed
}

// tensorLayout are offsets in a ggml_tensor and its size with a header, in bytes; 0: unknown. They are in the code of
// functions that every program can call.
type tensorLayout struct {
	data int // ggml_get_data returns what is there
	name int // ggml_get_name returns this address
	size int // ggml_tensor_overhead returns it
}

// ErrAbsent is the error of a process that does not link llama.cpp, as far as its files show.
var ErrAbsent = errors.New("it does not link llama.cpp")
