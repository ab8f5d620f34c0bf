package tensor

import "fmt"

// Matrix is a weight matrix in its stored form: Rows output features of Cols values each, row after row in Data, which
// may have any alignment and is never written.
type Matrix struct {
	Type       Type
	Rows, Cols int
	Data       []byte
}

// Validate reports whether the kernels can process m: a supported type, whole blocks, and enough data.
func (m *Matrix) Validate() error {
	switch {
	case !m.Type.Supported():
		return fmt.Errorf("check matrix: no kernels for type %s", m.Type)
	case m.Rows < 0 || m.Cols <= 0:
		return fmt.Errorf("check matrix: %d rows of %d columns", m.Rows, m.Cols)
	case m.Cols%m.Type.BlockElems() != 0:
		return fmt.Errorf("check matrix: %d columns are not a multiple of the %d values in a block of %s",
			m.Cols, m.Type.BlockElems(), m.Type)
	case m.Rows > len(m.Data)/m.Type.RowBytes(m.Cols):
		return fmt.Errorf("check matrix: %d rows of %d bytes in %d bytes of data",
			m.Rows, m.Type.RowBytes(m.Cols), len(m.Data))
	}
	return nil
}

// Expert returns a view of rows e*rows .. (e+1)*rows: one expert of a tensor that stacks all of them.
func (m *Matrix) Expert(e, rows int) Matrix {
	n := rows * m.Type.RowBytes(m.Cols)
	return Matrix{Type: m.Type, Rows: rows, Cols: m.Cols, Data: m.Data[e*n : (e+1)*n : (e+1)*n]}
}

// Row returns the stored form of row i.
func (m *Matrix) Row(i int) []byte {
	n := m.Type.RowBytes(m.Cols)
	return m.Data[i*n : (i+1)*n : (i+1)*n]
}

// Dequantize writes the values of row i to dst[:Cols], for example a token's embedding.
func (m *Matrix) Dequantize(dst []float32, i int) {
	dequantizeRow(dst[:m.Cols], m.Type, m.Row(i))
}
