// Command bench measures the library against go-zookeeper and Java Curator, and reports where it misses its budget.
//
//	go run ./bench                        # everything, half an hour
//	go run ./bench -only 'null'           # the rows whose name and server match
//	go run ./bench -rounds 9 -chunk 2s    # longer, steadier
//	go run ./bench -connect host:2181     # on your own server, instead of one that it starts
//	go run ./bench -out docs/performance-tables.md # and docs/performance-tables.svg
//
// # How it measures
//
// A row of the table is one piece of work and its contenders. In each round every contender does the work for one chunk
// of time on the same server, one after the other. The order rotates from round to round, so a slow minute of the
// machine affects all of them. The figures are medians over the rounds. Ratios are medians of the ratios within a
// round. Rounds to warm up, mostly for Java's compiler, come first and do not count.
//
// Each contender has a process of its own and reports its own CPU time, user and system, garbage collection included.
// The Go contenders are this program, started again. The null server is a process too. It answers everything at once,
// so its rows show the limit of a client. They have each contender on one core and on all, and as the limit of all
// clients a loop of prepared requests.
//
// The budget is about the first contender of a row, if it does not name another one.
package main
