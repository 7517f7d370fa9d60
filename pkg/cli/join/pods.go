// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	registryFlag    = "image-registry"
	credentialsFlag = "image-pull-credential-file"
	pullSecretsFlag = "image-pull-secrets"
	qosFlag         = "resource-qos-class"
	requestsFlag    = "resource-requests"
	limitsFlag      = "resource-limits"

	// maxCredentials is the largest size of a file of credentials in bytes: a Secret cannot be larger.
	maxCredentials = 1 << 20
	maxPullSecrets = 16
)

// podOptions are the flags for the image of an agent, and for what its pods may use. Most have clusteradm's names.
type podOptions struct {
	registry    string
	credentials string
	pullSecrets []string
	qosClass    string
	requests    map[string]string
	limits      map[string]string

	// pullConfig is the content of the file of credentials.
	pullConfig []byte
}

func (o *podOptions) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.registry, registryFlag, "", "Registry of our images, such as images.example.com/mirror: it is prepended to the default name of each image.")
	fs.StringVar(&o.credentials, credentialsFlag, "", "File with credentials for registries, as docker stores them in config.json. They become the Secret "+deploy.PullSecretName+
		" in the namespace of the agent, with which its image is pulled.")
	fs.StringSliceVar(&o.pullSecrets, pullSecretsFlag, nil, "Names of existing Secrets in the namespace of the agent, with which its image is pulled.")
	fs.StringVar(&o.qosClass, qosFlag, "", "Resources of the agent's containers: "+string(operatorv1.ResourceQosClassDefault)+" (of the manifests), "+
		string(operatorv1.ResourceQosClassBestEffort)+" (none) or "+string(operatorv1.ResourceQosClassResourceRequirement)+" (of the next two flags). Defaults to the last with one of "+
		"these flags, and to the first otherwise.")
	fs.StringToStringVar(&o.requests, requestsFlag, nil, "Resource requests of each container of the agent, such as cpu=50m,memory=64Mi.")
	fs.StringToStringVar(&o.limits, limitsFlag, nil, "Resource limits of each container of the agent, such as memory=512Mi.")
	kit.Must(cmd.RegisterFlagCompletionFunc(qosFlag, cobra.FixedCompletions([]string{string(operatorv1.ResourceQosClassDefault), string(operatorv1.ResourceQosClassBestEffort),
		string(operatorv1.ResourceQosClassResourceRequirement)}, cobra.ShellCompDirectiveNoFileComp)))
}

// registryName matches HOST[:PORT][/PATH].
var registryName = regexp.MustCompile(`^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]([-._a-z0-9]*[a-z0-9])?)*$`)

// setRegistry sets the registry of the images that the user has not set.
func (o *joinOptions) setRegistry(fs *pflag.FlagSet) error {
	switch {
	case o.pods.registry == "":
		return nil
	case !registryName.MatchString(o.pods.registry):
		return fmt.Errorf("--%s must be HOST[:PORT][/PATH], not %q", registryFlag, o.pods.registry)
	case fs.Changed("image"):
		return fmt.Errorf("--image and --%s exclude each other: --image also names a registry", registryFlag)
	case o.image == "":
		return fmt.Errorf("--image must be set instead of --%s: there is no default image for version %s of this program", registryFlag, o.Version)
	}
	o.image, o.detached.ownImage = o.pods.registry+"/"+o.image, true
	if operator := &o.detached.operator; operator.Image != "" && !fs.Changed(management.OperatorImageFlag) {
		operator.Image = o.pods.registry + "/" + operator.Image
	}
	return nil
}

func (o *podOptions) validate() error {
	if len(o.pullSecrets) > maxPullSecrets {
		return fmt.Errorf("--%s names %d Secrets, and the limit is %d", pullSecretsFlag, len(o.pullSecrets), maxPullSecrets)
	}
	for _, name := range o.pullSecrets {
		if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
			return fmt.Errorf("--%s: %q is not the name of a Secret: %s", pullSecretsFlag, name, strings.Join(why, "; "))
		}
		if o.credentials != "" && name == deploy.PullSecretName {
			return fmt.Errorf("--%s must not include %s, which is created from --%s", pullSecretsFlag, name, credentialsFlag)
		}
	}
	slices.Sort(o.pullSecrets)
	o.pullSecrets = slices.Compact(o.pullSecrets)
	return errors.Join(o.readCredentials(), o.validateResources())
}

// readCredentials reads the file of credentials. Errors do not contain its content.
func (o *podOptions) readCredentials() error {
	if o.credentials == "" {
		return nil
	}
	info, err := os.Stat(o.credentials)
	if err != nil {
		return fmt.Errorf("--%s: %w", credentialsFlag, err)
	}
	if info.Size() > maxCredentials {
		return fmt.Errorf("--%s: the file has %d bytes, but the limit of a Secret is %d", credentialsFlag, info.Size(), maxCredentials)
	}
	data, err := os.ReadFile(o.credentials)
	if err != nil {
		return fmt.Errorf("--%s: %w", credentialsFlag, err)
	}
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil || len(config.Auths) == 0 {
		return fmt.Errorf("--%s: the file has no credentials: it must be JSON with \"auths\", as docker login writes it without a credential helper", credentialsFlag)
	}
	o.pullConfig = data
	return nil
}

func (o *podOptions) validateResources() error {
	given := len(o.requests)+len(o.limits) > 0
	switch class := operatorv1.ResourceQosClass(o.qosClass); {
	case class == "" && given:
		o.qosClass = string(operatorv1.ResourceQosClassResourceRequirement)
	case class == "", class == operatorv1.ResourceQosClassDefault && !given, class == operatorv1.ResourceQosClassBestEffort && !given:
		return nil
	case class == operatorv1.ResourceQosClassDefault, class == operatorv1.ResourceQosClassBestEffort:
		return fmt.Errorf("--%s and --%s are for --%s=%s, not %s", requestsFlag, limitsFlag, qosFlag, operatorv1.ResourceQosClassResourceRequirement, class)
	case class != operatorv1.ResourceQosClassResourceRequirement:
		return fmt.Errorf("--%s must be %s, %s or %s, not %q", qosFlag, operatorv1.ResourceQosClassDefault, operatorv1.ResourceQosClassBestEffort,
			operatorv1.ResourceQosClassResourceRequirement, o.qosClass)
	case !given:
		return fmt.Errorf("--%s or --%s must be set with --%s=%s", requestsFlag, limitsFlag, qosFlag, class)
	}
	requests, err := quantities(requestsFlag, o.requests)
	if err != nil {
		return err
	}
	limits, err := quantities(limitsFlag, o.limits)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if limit, is := limits[name]; is && limit.Cmp(requests[name]) < 0 {
			return fmt.Errorf("--%s: %s=%s exceeds the limit %s", requestsFlag, name, o.requests[name], o.limits[name])
		}
	}
	return nil
}

func quantities(flag string, values map[string]string) (map[string]resource.Quantity, error) {
	parsed := map[string]resource.Quantity{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if why := validation.IsQualifiedName(name); len(why) > 0 {
			return nil, fmt.Errorf("--%s: %q is not the name of a resource: %s", flag, name, strings.Join(why, "; "))
		}
		quantity, err := resource.ParseQuantity(values[name])
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("--%s: %s must be a quantity, such as 500m or 64Mi, not %q", flag, name, values[name])
		}
		parsed[name] = quantity
	}
	return parsed, nil
}

// resources returns the resources of a container. It returns nil for those of the manifests, and an empty map for none.
func (o *podOptions) resources() map[string]any {
	if o.qosClass == "" || o.qosClass == string(operatorv1.ResourceQosClassDefault) {
		return nil
	}
	resources := map[string]any{}
	for field, values := range map[string]map[string]string{"requests": o.requests, "limits": o.limits} {
		if len(values) > 0 {
			all := map[string]any{}
			for name, value := range values {
				all[name] = value
			}
			resources[field] = all
		}
	}
	return resources
}

// requirement returns the resources for the spec of a Klusterlet, or nil for those of the manifests.
func (o *podOptions) requirement() map[string]any {
	resources := o.resources()
	if resources == nil {
		return nil
	}
	requirement := map[string]any{"type": o.qosClass}
	if len(resources) > 0 {
		requirement["resourceRequirements"] = resources
	}
	return requirement
}

// pullNames returns the names of all Secrets that are used to pull the image of the agent.
func (o *podOptions) pullNames() (names []any) {
	for _, name := range o.pullSecrets {
		names = append(names, name)
	}
	if len(o.pullConfig) > 0 {
		names = append(names, deploy.PullSecretName)
	}
	return names
}

// completeAgent returns the agent with all optional objects that a join can create.
func completeAgent(m *managed, works deploy.Works) deploy.Agent {
	agent := m.agent(works)
	agent.PullConfig, agent.Upgradable = []byte("{}"), true
	return agent
}

// pruneCredentials deletes the credentials that an earlier join has created if they are not among the objects.
func pruneCredentials(ctx context.Context, m *managed, objects []*unstructured.Unstructured) error {
	former := deploy.PullSecret(m.namespace, nil)
	if idsOf(objects).Has(remote.IDOf(former)) {
		return nil
	}
	_, err := m.Remove(ctx, former)
	return err
}
