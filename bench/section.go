package main

// section is a group of rows in the tables, with the Go code of their work.
type section struct {
	workloads map[string]workload // by the names of the cases
	rows      []row
}

// sections are all sections, in the order of the tables.
var sections = []section{
	operationWork, lockWork, fenceWork, latchWork, queueWork, barrierWork, sharedWork, counterWork, nodeWork,
	discoveryWork, connectionWork, cacheWork, tracingWork,
}

// allRows returns the rows of all sections.
func allRows() (rows []row) {
	for _, s := range sections {
		rows = append(rows, s.rows...)
	}
	return rows
}
