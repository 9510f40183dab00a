package zkserver

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// The four-letter words about the configuration of a server: conf, dirs and envi.

// id returns the number of the server, 0 for a standalone one.
func (m *Member) id() int {
	if m.service.standalone() {
		return 0
	}
	return m.number
}

// address returns the address of the member; zero if the service has no addresses.
func (m *Member) address() Address {
	if addresses := m.service.config.Addresses; m.number <= len(addresses) {
		return addresses[m.number-1]
	}
	return Address{}
}

func (m *Member) writeConfig(b *strings.Builder) {
	c, a := &m.service.config, m.address()
	plain, secure := a.ClientPort, -1
	if c.Secure {
		plain, secure = secure, plain
	}
	fmt.Fprintf(b, "clientPort=%d\nsecureClientPort=%d\n", plain, secure)
	b.WriteString("dataDir=memory\ndataDirSize=0\ndataLogDir=memory\ndataLogSize=0\n")
	fmt.Fprintf(b, "tickTime=%d\nmaxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n",
		c.Tick.Milliseconds(), c.MinSessionTimeout.Milliseconds(), c.MaxSessionTimeout.Milliseconds())
	fmt.Fprintf(b, "clientPortListenBacklog=-1\nserverId=%d\n", m.id())
	if m.service.standalone() {
		return
	}
	// The limits are those of the configuration that comes with Apache ZooKeeper.
	syncLimit := 5
	if c.SyncLimit > 0 {
		syncLimit = c.SyncLimit
	}
	fmt.Fprintf(b,
		"initLimit=10\nsyncLimit=%d\nelectionAlg=3\nelectionPort=%d\nquorumPort=%d\npeerType=0\nmembership: \n%s",
		syncLimit, a.ElectionPort, a.QuorumPort, m.service.ensemble.text())
}

// writeDirectories writes the sizes on disk, which are 0.
func writeDirectories(_ *Member, b *strings.Builder) {
	b.WriteString("datadir_size: 0\nlogdir_size: 0\n")
}

func (m *Member) writeEnvironment(b *strings.Builder) {
	directory, err := os.Getwd()
	if err != nil {
		directory = os.TempDir()
	}
	fmt.Fprintf(b,
		"Environment:\nzookeeper.version=%s\nhost.name=localhost\ngo.version=%s\nos.name=%s\nos.arch=%s\nuser.dir=%s\n",
		m.service.config.Version.build(), runtime.Version(), runtime.GOOS, runtime.GOARCH, directory)
}
