// Package curatortest has servers and fault injection for tests of code that uses this library: Apache ZooKeeper as it
// is installed on the machine, alone or as an ensemble, started and stopped, killed and frozen at will, and a proxy
// that cuts, delays or swallows single requests and answers. Production runs Apache ZooKeeper without any of this.
//
//	server, err := curatortest.NewRealServer()
//	if err != nil {
//		t.Fatal(err)
//	}
//	defer server.Close()
//	client, err := framework.New(server.ConnectString())
//
// In Java: TestingServer, TestingCluster and KillSession of curator-test.
package curatortest
