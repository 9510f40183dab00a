package zkpath_test

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/zkpath"
)

func ExampleJoin() {
	fmt.Println(zkpath.Join("/locks", "orders", "lock-"))
	fmt.Println(zkpath.Join("locks/", "/orders/"))
	fmt.Println(zkpath.Join("/", ""))
	// Output:
	// /locks/orders/lock-
	// /locks/orders
	// /
}

func ExampleValidate() {
	err := zkpath.Validate("/locks//orders", false)
	fmt.Println(err)
	fmt.Println(errors.Is(err, zk.ErrInvalidPath))
	// Output:
	// zk: invalid path: "/locks//orders": empty name at byte 7
	// true
}

func ExampleFixForNamespace() {
	path, err := zkpath.FixForNamespace("app", "/orders", false)
	fmt.Println(path, err)
	fmt.Println(zkpath.StripNamespace("app", path))
	fmt.Println(zkpath.StripNamespace("app", "/apple"))
	// Output:
	// /app/orders <nil>
	// /orders
	// /apple
}

func ExampleProtect() {
	id := zkpath.NewProtectionID()
	name := zkpath.Protect(id, "lock-")
	fmt.Println(len(id), zkpath.IsProtected(name), zkpath.Normalize(name))
	// Output:
	// 36 true lock-
}

func ExampleSequentialSuffix() {
	fmt.Println(zkpath.SequentialSuffix("/locks/orders/lock-0000000042"))
	// Output:
	// 0000000042
}

func ExampleTemplate() {
	const user = zkpath.Template("/app/{tenant}/users/{id}")
	path, err := user.Expand(map[string]string{"tenant": "acme", "id": "7"})
	fmt.Println(path, err)
	values, ok := user.Match("/app/other/users/8")
	fmt.Println(values["tenant"], values["id"], ok)
	// Output:
	// /app/acme/users/7 <nil>
	// other 8 true
}
