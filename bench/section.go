package main

// section is a part of what is measured: its rows in the tables, and how a Go contender does their work.
type section struct {
	workloads map[string]workload // by the names of the cases
	rows      []row
}

// sections is everything, in the order of the tables.
var sections = []section{
	operationWork, lockWork, fenceWork, latchWork, queueWork, barrierWork, connectionWork,
	cacheWork, tracingWork,
}

// allRows gives the rows of all sections.
func allRows() (rows []row) {
	for _, s := range sections {
		rows = append(rows, s.rows...)
	}
	return rows
}
