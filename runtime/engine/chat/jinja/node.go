package jinja

// expr is an expression.
type expr interface {
	eval(m *machine, s *scope) any
}

// stmt is a statement, or text between them.
type stmt interface {
	run(m *machine, s *scope) flow
}

// flow is the way in which a statement ends.
type flow uint8

const (
	goOn flow = iota
	breakLoop
	continueLoop
)

// Expressions.
type (
	literal   struct{ value any }
	name      struct{ name string }
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	attrExpr  struct { // x.name
		x    expr
		name string
	}
	indexExpr struct{ x, index expr } // x[index]
	sliceExpr struct {                // x[low:high:step], each nil if omitted
		x, low, high, step expr
	}
	callExpr struct {
		f    expr
		args argExprs
	}
	filterExpr struct { // x | name(args)
		x    expr
		name string
		args argExprs
	}
	testExpr struct { // x is name(args)
		x    expr
		name string
		args argExprs
	}
	notExpr  struct{ x expr }
	signExpr struct { // -x, or +x
		x        expr
		negative bool
	}
	arithExpr struct {
		op          string
		left, right expr
	}
	concatExpr  struct{ parts []expr } // a ~ b
	andExpr     struct{ left, right expr }
	orExpr      struct{ left, right expr }
	compareExpr struct { // first op operand op operand ...
		first    expr
		ops      []string
		operands []expr
	}
	condExpr struct{ test, yes, no expr } // no is nil if omitted
)

// argExprs are the arguments of a call.
type argExprs struct {
	positional []expr
	names      []string // keys of named
	named      []expr
}

// Statements.
type (
	textStmt  struct{ text string }
	printStmt struct {
		x    expr
		line int
	}
	ifStmt struct {
		tests     []expr // conditions of if and its elifs
		branches  [][]stmt
		otherwise []stmt
		line      int
	}
	forStmt struct {
		target    target
		over      expr
		when      expr // nil: all
		recursive bool
		body      []stmt
		empty     []stmt
		line      int
	}
	setStmt struct {
		target target
		value  expr   // nil: the text of body
		body   []stmt // used if value is nil
		filter expr   // filter of the text; nil: none
		line   int
	}
	macroStmt struct {
		name     string
		params   []string
		defaults []expr // defaults of the last params
		body     []stmt
	}
	callStmt struct { // a call of a macro with a body
		call   *callExpr
		caller *macroStmt
		line   int
	}
	filterStmt struct {
		filter expr
		body   []stmt
		line   int
	}
	withStmt struct {
		names  []string
		values []expr
		body   []stmt
		line   int
	}
	groupStmt struct{ body []stmt } // a block without effect, such as generation
	breakStmt struct{}
	nextStmt  struct{}
)

// target is the target of an assignment: a name, an attribute of a namespace, or several targets for unpacking.
type target struct {
	name  string
	attr  string // attribute of the namespace called name; "" for the name itself
	parts []target
}
