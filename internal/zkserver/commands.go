package zkserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// commands are the four-letter words. Operators and monitors send one in place of a handshake.
var commands = map[string]func(*Member, *strings.Builder){
	"ruok": func(_ *Member, b *strings.Builder) { b.WriteString("imok") },
	"isro": (*Member).writeReadOnly,
	"srvr": (*Member).writeServer,
	"stat": (*Member).writeStat,
	"mntr": (*Member).writeMonitor,
	"conf": (*Member).writeConfig,
	"cons": (*Member).writeConnections,
	"dirs": writeDirectories,
	"dump": (*Member).writeDump,
	"envi": (*Member).writeEnvironment,
	"gtmk": (*Member).writeTraceMask,
	"wchs": (*Member).writeWatchSummary,
	"wchc": (*Member).writeWatchesByConnection,
	"wchp": (*Member).writeWatchesByPath,
	"crst": (*Member).resetConnections,
	"srst": (*Member).resetServer,
}

// setTraceMask is the only four-letter word with an argument: the mask follows in 8 bytes.
const setTraceMask = "stmk"

// alwaysAnswered has the words that a member answers also without a quorum.
var alwaysAnswered = map[string]bool{"ruok": true, "envi": true, "gtmk": true, setTraceMask: true}

// notServing is the answer of a member without a quorum to most words.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// command answers a four-letter word, and returns false if word is none. r has the bytes behind it.
func (c *conn) command(word string, r *bufio.Reader) bool {
	write := commands[word]
	if word == setTraceMask {
		mask, ok := readTraceMask(r)
		if !ok {
			return true // Apache ZooKeeper ends the connection without an answer
		}
		write = func(m *Member, b *strings.Builder) {
			m.traceMask = mask
			m.writeTraceMask(b)
		}
	}
	if write == nil {
		return false
	}
	s := c.member.service
	s.mu.Lock()
	defer s.mu.Unlock()
	c.received++
	c.member.received++
	var b strings.Builder
	switch {
	case c.member.open() || alwaysAnswered[word]:
		write(c.member, &b)
	case word == "isro":
		b.WriteString("null")
	default:
		b.WriteString(notServing)
	}
	c.out.addRaw([]byte(b.String()))
	return true
}

// defaultTraceMask logs requests, packets between servers, sessions and warnings.
const defaultTraceMask = 306

// readTraceMask reads the argument of stmk, which must arrive together with the word.
func readTraceMask(r *bufio.Reader) (mask int64, ok bool) {
	var b [8]byte
	if r.Buffered() < len(b) {
		return 0, false
	}
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b[:])), true
}

func (m *Member) writeTraceMask(b *strings.Builder) { fmt.Fprint(b, m.traceMask) }

func (m *Member) writeReadOnly(b *strings.Builder) {
	if m.state == stateReadOnly {
		b.WriteString("ro")
	} else {
		b.WriteString("rw")
	}
}
