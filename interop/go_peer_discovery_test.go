package interop_test

import (
	"context"
	"time"

	"github.com/gocurator/curator/discovery"
)

// instance is an instance of a service in a command or an answer.
type instance struct {
	Name                string       `json:"name"`
	ID                  string       `json:"id"`
	Address             string       `json:"address"`
	Port                int          `json:"port"`
	RegistrationTimeUTC int64        `json:"registrationTimeUTC"`
	Payload             instanceMeta `json:"payload"`
}

func (i instance) registered() discovery.ServiceInstance[instanceMeta] {
	s := discovery.NewServiceInstance[instanceMeta](i.Name, i.Address, i.Port)
	s.ID, s.RegistrationTime, s.Payload = i.ID, time.UnixMilli(i.RegistrationTimeUTC), i.Payload
	return s
}

func instancesOf(all []discovery.ServiceInstance[instanceMeta]) []instance {
	found := []instance{}
	for _, s := range all {
		found = append(found, instance{
			Name: s.Name, ID: s.ID, Address: s.Address, Port: s.Port,
			RegistrationTimeUTC: s.RegistrationTime.UnixMilli(), Payload: s.Payload,
		})
	}
	return found
}

// serviceView is what a process finds of a service.
type serviceView struct {
	Cache    []instance `json:"cache"`
	Provider []instance `json:"provider"` // in its turns
	Query    []instance `json:"query"`
}

// follower follows a service.
type follower struct {
	cache    *discovery.ServiceCache[instanceMeta]
	provider *discovery.ServiceProvider[instanceMeta]
}

func (f follower) start(ctx context.Context) error {
	if err := f.cache.Start(ctx); err != nil {
		return err
	}
	return f.provider.Start(ctx)
}

func startDiscovery(s *goScope, o *order) error {
	d := discovery.New[instanceMeta](s.client, o.Path, discovery.WithPayloadClass("Instances$Meta"))
	if err := d.Start(); err != nil {
		return err
	}
	end := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		return d.Close(ctx)
	}
	s.closeAtEnd(end)
	followers := make(map[string]follower)
	for _, name := range o.Services {
		followers[name] = follower{d.Cache(name), d.Provider(name)}
		if err := followers[name].start(s.ctx); err != nil {
			return err
		}
	}
	s.on("discoveryRegister", o, func(o *order) (any, error) { return nil, d.Register(s.ctx, o.Instance.registered()) })
	s.on("discoveryClose", o, func(*order) (any, error) { return nil, end() })
	s.on("discoveryView", o, func(*order) (any, error) {
		views := make(map[string]serviceView)
		for name, f := range followers {
			var turns []discovery.ServiceInstance[instanceMeta]
			for range f.provider.AllInstances() {
				if next, err := f.provider.Instance(); err == nil {
					turns = append(turns, next)
				}
			}
			registered, err := d.Instances(s.ctx, name)
			if err != nil {
				return nil, err
			}
			views[name] = serviceView{instancesOf(f.cache.Instances()), instancesOf(turns), instancesOf(registered)}
		}
		return views, nil
	})
	return nil
}
