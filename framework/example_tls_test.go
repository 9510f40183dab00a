package framework_test

import (
	"fmt"

	"github.com/gocurator/curator/framework"
)

// A program whose nodes have ACLs of its certificate refuses servers that do not get it.
func ExampleWithRequiredClientCertificate() {
	client, err := framework.New("zk1:2281,zk2:2281",
		framework.WithTLSFromFiles("client.pem", "client.key", "ca.pem"), framework.WithRequiredClientCertificate())
	fmt.Println(client != nil, err)

	_, err = framework.New("zk1:2281,zk2:2281",
		framework.WithTLSFromFiles("", "", "ca.pem"), framework.WithRequiredClientCertificate())
	fmt.Println(err)
	// Output:
	// true <nil>
	// curator: new client: bad arguments: a required client certificate, and none in the options of TLS
}
