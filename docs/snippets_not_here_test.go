package docs_test

import (
	"context"
	"encoding/json"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/recipes/cache"
	"github.com/gocurator/curator/recipes/nodes"
	"github.com/gocurator/curator/zkpath"
)

// serviceInstance has the members of Java's ServiceInstance, in the order of its JSON.
type serviceInstance struct {
	Name                string          `json:"name"`
	ID                  string          `json:"id"`
	Address             *string         `json:"address"`
	Port                *int            `json:"port"`
	SSLPort             *int            `json:"sslPort"`
	Payload             json.RawMessage `json:"payload"`
	RegistrationTimeUTC int64           `json:"registrationTimeUTC"` // milliseconds
	ServiceType         string          `json:"serviceType"`
	URISpec             json.RawMessage `json:"uriSpec"`
}

func registered(client *framework.Client, instance serviceInstance) (*nodes.PersistentNode, error) {
	data, err := json.Marshal(instance)
	if err != nil {
		return nil, err
	}
	path := zkpath.Join("/services", instance.Name, instance.ID)
	node := nodes.NewPersistentNode(client, path, builders.Ephemeral, data)
	return node, node.Start()
}

func instancesOf(ctx context.Context, client *framework.Client, name string) (*cache.PathChildrenCache, error) {
	c := cache.NewPathChildrenCache(client, zkpath.Join("/services", name))
	if err := c.Start(ctx, cache.BuildInitialCache); err != nil {
		return nil, err
	}
	return c, nil
}

// decoded returns the instances in a cache; those that do not decode are left out.
func decoded(c *cache.PathChildrenCache) (instances []serviceInstance) {
	for _, node := range c.CurrentData() {
		var instance serviceInstance
		if json.Unmarshal(node.Data, &instance) == nil {
			instances = append(instances, instance)
		}
	}
	return instances
}
