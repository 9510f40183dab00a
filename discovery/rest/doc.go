// Package rest serves a [discovery.ServiceDiscovery] over HTTP, for programs that have no client of ZooKeeper. Paths,
// codes and bodies are those of Java's curator-x-discovery-server.
//
//	PUT    v1/service/{name}/{id}   registers an instance: 201
//	DELETE v1/service/{name}/{id}   unregisters it: 200, also if there is none
//	GET    v1/service/{name}/{id}   the instance: 200, or 404. GET {name}/{id} is the old form, with a Warning
//	GET    v1/service/{name}        the instances, disabled ones too, without those that cannot be read or written
//	GET    v1/service               the names of the services: [{"name":"orders"}]
//	GET    v1/anyservice/{name}     one of the instances that are not disabled, at random; or 404
//
// An instance in a body is not the one in a node. It has neither a URI spec nor whether it is enabled: a PUT of what a
// GET has returned enables the instance. The payload is plain JSON, without its Java class; the class in the node is
// that of the discovery.
//
//	{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"registrationTimeUTC":1700000000000,
//	"serviceType":"STATIC","payload":"eu"}
//
// A PUT may leave out what it does not know. The name and the id are those of the path; others are refused. An absent
// address or port is none, as null is. The time of the registration is now, in milliseconds. The type is STATIC: such
// an instance is expired by [discovery.ServiceDiscovery.Purge] unless it is registered again in time; PERMANENT ones
// stay. Dynamic ones, which would end with the session of this server, are refused.
//
// What is wrong with a request is a text behind one of these codes: 400 for a body or a name that makes no sense, 404,
// 405, 409 if the node of the instance is that of a session or kept by this process, 413 for more than 1 MiB, 415 for
// another content type than application/json. 503 means that ZooKeeper does not answer: a change may have taken effect
// then, and can be made again. 500 is for all else, such as an instance that cannot be read. The context of a request
// bounds what it does: set a timeout of your own, as with [http.TimeoutHandler], for outages.
//
// # What a server keeps
//
// Nothing. A PUT writes the node once, with [discovery.ServiceDiscovery.RegisterOnce], and a GET asks ZooKeeper each
// time. So any number of servers can serve one base path, each unregisters what another has registered, and a server
// that ends takes nothing with it. Only what the process itself registers with Register is put back when somebody
// else deletes it; a DELETE of it, on the same discovery, unregisters it.
//
// # Security
//
// The handler has no authentication. Any caller may register any address for any service, and unregister all. Put it
// behind a handler that authenticates requests, or on an address that only trusted programs reach.
package rest
