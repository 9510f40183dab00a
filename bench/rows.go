package main

// What a table shows of a row.
var (
	throughput = []metric{rate, cpu, allocs}
	latency    = []metric{rate, p50, p99, cpu, allocs}
	waits      = []metric{p50, p99}
)

// What the budget demands of operations in the background.
var (
	// On a real server the server is the limit: what a client decides is its CPU time.
	realBudget = []bound{
		atLeast(0.95, rate).of(javas), atLeast(0.95, rate).of(plain),
		atMost(0.75, cpu).of(javas), atMost(0.75, cpu).of(plain),
	}
	nullBudget = []bound{
		atLeast(10, rate).of(javas), atLeast(7, rate).of(plain),
		atLeast(1e6, rate), atMost(1, cpu), atMost(8, allocs),
	}
)

// rows is everything that is measured.
var rows = []row{
	{
		name: "background create, window 1000", server: realServer, show: throughput, budget: realBudget,
		entries: against(work(createBackground), curator, plain, javas),
	},
	{
		name: "background getData, window 1000", server: realServer, show: throughput, budget: realBudget,
		entries: against(work(getDataBg), curator, plain, javas),
	},
	{
		name: "background create, window 1000", server: nullServer, show: throughput, budget: nullBudget,
		entries: against(work(createBackground), curator, plain, javas),
	},
	{
		name: "background getData, window 1000", server: nullServer, show: throughput, budget: nullBudget,
		entries: against(work(getDataBg), curator, plain, javas),
	},
	{
		name: "getData, 16 goroutines", server: realServer, show: latency,
		entries: against(work(getDataSync).threads(16), curator, plain, javas),
		budget:  []bound{atMost(0.8, cpu).of(plain), atMost(0.65, cpu).of(javas)},
	},
	{
		name: "getData, 128 goroutines", server: nullServer, show: latency,
		entries: against(work(getDataSync).threads(128), curator, plain, javas),
		budget:  []bound{atLeast(5, rate).of(javas), atLeast(2.5, rate).of(plain)},
	},
	{
		name: "create, one goroutine", server: realServer, show: latency,
		entries: against(work(createSync), curator, plain, javas),
		budget:  []bound{atMost(1, p50).of(plain), atMost(6, allocs)},
	},
	{
		name: "getData, one goroutine", server: realServer, show: latency,
		entries: against(work(getDataSync), curator, plain, javas),
		budget:  []bound{atMost(1, p50).of(plain), atMost(6, allocs)},
	},
	{
		name: "mutex acquire and release", server: realServer, show: latency,
		entries: against(work(mutexUncontended), curator, plain, javas),
		budget:  []bound{atLeast(1.4, rate).of(plain), atLeast(1.4, rate).of(javas)},
	},
	{
		name: "mutex, 8 clients want it", server: realServer, show: latency,
		entries: against(work(mutexContended).threads(8), curator, javas),
		budget:  []bound{atLeast(1.1, rate).of(javas), atMost(0.7, cpu).of(javas)},
	},
	{
		name: "mutex hand-over, a long line", server: realServer, show: waits, stretch: 2,
		entries: []entry{
			{name: "1000 in line", library: curator, load: work(mutexLine).threads(1000)},
			{name: "10 in line", library: curator, load: work(mutexLine).threads(10)},
		},
		budget: []bound{atMost(2, p50).of("10 in line")},
	},
	{
		name: "1000 blocked acquirers", server: realServer, show: []metric{memory, p50, p99}, fresh: true,
		entries: against(work(waiting), curator, javas),
		budget:  []bound{atMost(0.1, memory).of(javas)},
	},
	{
		// The latency is to the first answer, the rate is of whole lives, with the close.
		name: "connect to first answer", server: realServer, show: []metric{rate, p50, p99},
		entries: against(work(connecting), curator, plain, javas),
		budget:  []bound{atMost(0.2, p50).of(javas), atLeast(5, rate).of(javas)},
	},
	{
		name: "session again after a cut", server: cutServer, show: waits, stretch: 4,
		entries: against(work(reconnecting), curator, plain, javas),
		budget:  []bound{atMost(50_000, p50)},
	},
	{
		name: "the same, three servers to choose from", server: cutServer, show: waits, stretch: 4, servers: 3,
		entries: against(work(reconnecting), curator, plain, javas),
		budget:  []bound{atMost(50_000, p50)},
	},
}
