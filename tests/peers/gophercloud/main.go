// gophercloud as a program's author uses it, as a peer: JSON lines on standard input and output, as tests/peers/peer.py has
// them.
//
//	gophercloud KEYSTONE_URL REGION PASSWORD
//
// A request is {"id": n, "do": "clusters.Create", "user": ..., "project": ..., "on": [ids], "opts": {...}}. The options are
// those of the package, by the names of its Go fields or of its JSON; what it returns is printed by the names of its JSON.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/gophercloud/gophercloud"
	"github.com/gophercloud/gophercloud/openstack"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/apiversions"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/v1/certificates"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/v1/clusters"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/v1/clustertemplates"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/v1/nodegroups"
	"github.com/gophercloud/gophercloud/openstack/containerinfra/v1/quotas"
	"github.com/gophercloud/gophercloud/pagination"
)

type request struct {
	ID           int             `json:"id"`
	Do           string          `json:"do"`
	User         string          `json:"user"`
	Project      string          `json:"project"`
	Microversion string          `json:"microversion"`
	On           []string        `json:"on"`
	Opts         json.RawMessage `json:"opts"`
}

type failure struct {
	Class   string `json:"class"`
	Module  string `json:"module"`
	Message string `json:"message"`
}

// providers has everybody who has logged in, by user and project.
var providers = map[[2]string]*gophercloud.ProviderClient{}

func client(asked request) (*gophercloud.ServiceClient, error) {
	who := [2]string{asked.User, asked.Project}
	if providers[who] == nil {
		provider, err := openstack.AuthenticatedClient(gophercloud.AuthOptions{
			IdentityEndpoint: os.Args[1], Username: asked.User, Password: os.Args[3], TenantName: asked.Project,
			DomainName: "Default",
		})
		if err != nil {
			return nil, err
		}
		providers[who] = provider
	}
	found, err := openstack.NewContainerInfraV1(providers[who], gophercloud.EndpointOpts{Region: os.Args[2]})
	if err == nil {
		found.Microversion = asked.Microversion
	}
	return found, err
}

// all reads every page of a list.
func all(pager pagination.Pager, extract func(pagination.Page) (interface{}, error)) (interface{}, error) {
	page, err := pager.AllPages()
	if err != nil {
		return nil, err
	}
	return extract(page)
}

// pages reads a list page by page, and tells how many were on each.
func pages(pager pagination.Pager, count func(pagination.Page) (int, error)) (interface{}, error) {
	counts := []int{}
	err := pager.EachPage(func(page pagination.Page) (bool, error) {
		found, err := count(page)
		counts = append(counts, found)
		return true, err
	})
	return counts, err
}

// waited is how programs wait for a cluster: they look again every second until it has this status, as the package's own
// gophercloud.WaitFor does.
func waited(service *gophercloud.ServiceClient, id, status string) (interface{}, error) {
	var found *clusters.Cluster
	err := gophercloud.WaitFor(int((60 * time.Second).Seconds()), func() (bool, error) {
		var err error
		found, err = clusters.Get(service, id).Extract()
		if _, gone := err.(gophercloud.ErrDefault404); gone && status == "gone" {
			return true, nil
		}
		return err == nil && found.Status == status, err
	})
	return found, err
}

func do(asked request) (interface{}, error) {
	service, err := client(asked)
	if err != nil {
		return nil, err
	}
	options := func(into interface{}) error {
		if len(asked.Opts) == 0 {
			return nil
		}
		return json.Unmarshal(asked.Opts, into)
	}
	on := func(at int) string { return asked.On[at] }
	switch asked.Do {
	case "apiversions.List":
		return all(apiversions.List(service), func(page pagination.Page) (interface{}, error) {
			return apiversions.ExtractAPIVersions(page)
		})
	case "apiversions.Get":
		return apiversions.Get(service, on(0)).Extract()
	case "clustertemplates.Create":
		var opts clustertemplates.CreateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return clustertemplates.Create(service, opts).Extract()
	case "clustertemplates.Get":
		return clustertemplates.Get(service, on(0)).Extract()
	case "clustertemplates.List":
		return all(clustertemplates.List(service, nil), func(page pagination.Page) (interface{}, error) {
			return clustertemplates.ExtractClusterTemplates(page)
		})
	case "clustertemplates.Update":
		var opts []clustertemplates.UpdateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		var changes []clustertemplates.UpdateOptsBuilder
		for _, one := range opts {
			changes = append(changes, one)
		}
		return clustertemplates.Update(service, on(0), changes).Extract()
	case "clustertemplates.Delete":
		return nil, clustertemplates.Delete(service, on(0)).ExtractErr()
	case "clusters.Create":
		var opts clusters.CreateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return clusters.Create(service, opts).Extract()
	case "clusters.Get":
		return clusters.Get(service, on(0)).Extract()
	case "clusters.WaitFor":
		return waited(service, on(0), on(1))
	case "clusters.List":
		var opts clusters.ListOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return pages(clusters.List(service, opts), func(page pagination.Page) (int, error) {
			found, err := clusters.ExtractClusters(page)
			return len(found), err
		})
	case "clusters.ListDetail":
		return all(clusters.ListDetail(service, nil), func(page pagination.Page) (interface{}, error) {
			return clusters.ExtractClusters(page)
		})
	case "clusters.Update":
		var opts []clusters.UpdateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		var changes []clusters.UpdateOptsBuilder
		for _, one := range opts {
			changes = append(changes, one)
		}
		return clusters.Update(service, on(0), changes).Extract()
	case "clusters.Resize":
		var opts clusters.ResizeOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return clusters.Resize(service, on(0), opts).Extract()
	case "clusters.Delete":
		return nil, clusters.Delete(service, on(0)).ExtractErr()
	case "nodegroups.List":
		return all(nodegroups.List(service, on(0), nodegroups.ListOpts{}), func(page pagination.Page) (interface{}, error) {
			return nodegroups.ExtractNodeGroups(page)
		})
	case "nodegroups.Get":
		return nodegroups.Get(service, on(0), on(1)).Extract()
	case "nodegroups.Create":
		var opts nodegroups.CreateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return nodegroups.Create(service, on(0), opts).Extract()
	case "nodegroups.Update":
		var opts []nodegroups.UpdateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		var changes []nodegroups.UpdateOptsBuilder
		for _, one := range opts {
			changes = append(changes, one)
		}
		return nodegroups.Update(service, on(0), on(1), changes).Extract()
	case "nodegroups.Delete":
		return nil, nodegroups.Delete(service, on(0), on(1)).ExtractErr()
	case "certificates.Get":
		return certificates.Get(service, on(0)).Extract()
	case "certificates.Create":
		var opts certificates.CreateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return certificates.Create(service, opts).Extract()
	case "certificates.Update":
		return nil, certificates.Update(service, on(0)).ExtractErr()
	case "quotas.Create":
		var opts quotas.CreateOpts
		if err := options(&opts); err != nil {
			return nil, err
		}
		return quotas.Create(service, opts).Extract()
	}
	return nil, fmt.Errorf("nobody knows how to do %s", asked.Do)
}

func main() {
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out.Encode(map[string]string{"event": "ready"})
	for in.Scan() {
		var asked request
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			panic(err)
		}
		result, err := do(asked)
		if err != nil {
			out.Encode(map[string]interface{}{"id": asked.ID, "error": failure{fmt.Sprintf("%T", err), "", err.Error()}})
			continue
		}
		out.Encode(map[string]interface{}{"id": asked.ID, "result": result})
	}
}
