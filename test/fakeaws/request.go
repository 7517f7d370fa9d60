// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// request is one call of an operation.
type request struct {
	*Server
	id      string
	service string
	region  string
	op      *operation
	model   *api.OperationModel
	params  api.Params
	who     identity
	http    *http.Request
	call    Call
}

// operation describes how an operation is served. Its functions run while the server is locked.
type operation struct {
	service, name string
	// write reports whether the operation changes something.
	write bool
	// open reports whether it needs neither a signature nor permissions, and free whether it needs no permissions.
	open, free bool
	// fails are the error codes of run, in addition to those common to all operations.
	fails []string
	// needs returns the necessary permissions. The first resource is the one in the log.
	needs func(*request) []right
	// context adds the condition keys of the request to those of the caller.
	context func(*request, iampolicy.Context)
	// run executes the operation. Its result is encoded as XML or JSON.
	run func(*request) (any, error)
}

type right struct{ action, resource string }

func (op *operation) action() string { return op.service + ":" + op.name }

var operations = func() map[string]*operation {
	byName := map[string]*operation{}
	for _, list := range [][]operation{iamOperations(), stsOperations(), eksOperations()} {
		for i := range list {
			byName[list[i].action()] = &list[i]
		}
	}
	return byName
}()

const maxBody = 1 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	req := &request{Server: s, id: newUUID(), http: r}
	out, err := req.handle()
	var failure *api.Error
	if err != nil && !errors.As(err, &failure) {
		failure = &api.Error{Code: Internal.Code, Message: err.Error()}
	}
	if failure != nil && failure.Code == Cut.Code {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	now := s.now()
	s.mu.Unlock()
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat)) // the SDK corrects its clock by it
	w.Header().Set("X-Amzn-Requestid", req.id)
	if failure != nil {
		req.answerError(w, failure.Complete(req.service, req.model))
		return
	}
	req.answer(w, out)
}

// handle handles the call. The order is AWS's: authentication, validation, authorization, and then the effect. Injected failures happen when the
// caller and the operation are known.
func (r *request) handle() (any, error) {
	r.http.Body = http.MaxBytesReader(nil, r.http.Body, maxBody)
	body, err := io.ReadAll(r.http.Body)
	if err != nil {
		return nil, api.Fail("ValidationError", "the body is longer than %d bytes", maxBody)
	}
	sig, sigErr := api.ParseSignature(r.http)
	if err := r.identify(sig, body); err != nil {
		return nil, err
	}
	if sigErr != nil {
		return nil, api.Fail("IncompleteSignature", "%v", sigErr)
	}
	r.mu.Lock()
	if sig != nil {
		r.who, err = r.authenticate(sig, body)
		if err == nil {
			r.region = sig.Region
		}
	} else if !r.op.open {
		err = api.Fail("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	r.begin()
	if err == nil {
		err = throttled(r)
	}
	var before, after faults
	if err == nil {
		before, after = r.due(r.call.Operation)
	}
	r.mu.Unlock()
	if err == nil {
		err = before.strike(r.call)
	}
	var out any
	if err == nil {
		out, err = r.act()
		if err == nil {
			err = after.strike(r.call)
		}
	}
	r.finish(err)
	return out, err
}

// act validates, authorizes and executes the call.
func (r *request) act() (any, error) {
	if faults := api.Models[r.service].Validate(r.model, r.params); len(faults) > 0 {
		return nil, api.Fail("ValidationError", "%d validation error(s) detected: %s", len(faults), strings.Join(faults, "; "))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.op.free {
		for _, need := range r.op.needs(r) {
			if err := r.authorise(need); err != nil {
				return nil, err
			}
		}
	}
	out, err := r.op.run(r)
	var failure *api.Error
	if errors.As(err, &failure) && failure.Status == 0 && !r.op.mayFail(failure.Code) {
		return nil, &api.Error{Code: "FakeAWSBug", Message: r.op.action() + " is not said to fail so: " + failure.Error(), Status: http.StatusNotImplemented}
	}
	return out, err
}

func (op *operation) mayFail(code string) bool {
	_, common := api.CommonErrors[code]
	for _, c := range op.fails {
		common = common || c == code
	}
	return common
}

func (r *request) authorise(need right) error {
	ctx := r.who.context()
	if r.op.context != nil {
		r.op.context(r, ctx)
	}
	if need.action == tagResourceAction && r.tagging == TagsRefused {
		return api.Fail("AccessDenied", "User: %s is not authorized to perform: %s on resource: %s with an explicit deny in a service control policy",
			r.who.arn(), need.action, need.resource)
	}
	if r.who.may(need.action, need.resource, ctx) == iampolicy.Allowed {
		return nil
	}
	return api.Fail("AccessDenied", "User: %s is not authorized to perform: %s on resource: %s because no identity-based policy allows the %s action",
		r.who.arn(), need.action, need.resource, need.action)
}

// identify determines the operation and its parameters.
func (r *request) identify(sig *api.Signature, body []byte) error {
	if sig != nil {
		r.service, r.region = sig.Service, sig.Region
	} else if path := r.http.URL.Path; strings.HasPrefix(path, "/clusters") || strings.HasPrefix(path, "/tags/") {
		r.service = "eks"
	}
	var action string
	var form url.Values
	if r.service != "eks" {
		var err error
		form, err = url.ParseQuery(string(body))
		if err != nil {
			return api.Fail("ValidationError", "%v", err)
		}
		for key, v := range r.http.URL.Query() {
			form[key] = v
		}
		action = form.Get("Action")
		if r.service == "" {
			r.service = "sts"
			if operations["iam:"+action] != nil {
				r.service = "iam"
			}
		}
	}
	model, ok := api.Models[r.service]
	if !ok {
		return api.Fail("InvalidAction", "fakeaws has no service %q", r.service)
	}
	var raw map[string]any
	if r.service == "eks" {
		rawPath, _, _ := strings.Cut(r.http.RequestURI, "?")
		action, raw = model.Route(r.http.Method, rawPath)
	} else if version := form.Get("Version"); version != model.APIVersion {
		return api.Fail("InvalidAction", "Could not find operation %s for version %s", action, version)
	}
	r.op, r.model = operations[r.service+":"+action], model.Operations[action]
	if r.op == nil || r.model == nil {
		return api.Fail("InvalidAction", "fakeaws does not serve %s of %s (%s %s)", action, r.service, r.http.Method, r.http.URL.Path)
	}
	if r.service != "eks" {
		p, err := model.FromForm(r.model, form)
		if err != nil {
			return api.Fail("ValidationError", "%v", err)
		}
		r.params = p
		return nil
	}
	model.FromURLQuery(r.model, r.http.URL.Query(), raw)
	if len(body) > 0 {
		var inBody map[string]any
		if err := json.Unmarshal(body, &inBody); err != nil {
			return api.Fail("ValidationError", "%v", err)
		}
		for key, v := range inBody {
			raw[key] = v
		}
	}
	r.params = raw
	return nil
}

// regionalHost matches a regional host name of AWS. The signature must be for the same region.
var regionalHost = regexp.MustCompile(`^(?:sts|eks)\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?(?::443)?$`)

// authenticate returns the identity of a signature. The caller holds the lock.
func (r *request) authenticate(sig *api.Signature, body []byte) (identity, error) {
	invalid := api.Fail("InvalidClientTokenId", "The security token included in the request is invalid.")
	key := r.keys[sig.AccessKey]
	if key == nil || key.who.account.Partition != partitionOf(sig.Region) {
		return identity{}, invalid
	}
	if m := regionalHost.FindStringSubmatch(r.http.Host); m != nil && m[1] != sig.Region {
		return identity{}, api.Fail("SignatureDoesNotMatch", "Credential should be scoped to a valid region.")
	}
	if !sig.Matches(r.http, body, key.secret) {
		return identity{}, api.Fail("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	r.signatures[sig.AccessKey] = append(r.signatures[sig.AccessKey], sig.Value)
	now := r.now()
	const layout = api.SigTime
	if earliest := now.Add(-api.SigValidity); sig.At.Before(earliest) {
		return identity{}, api.Fail("SignatureDoesNotMatch", "Signature expired: %s is now earlier than %s (%s - 15 min.)",
			sig.At.Format(layout), earliest.UTC().Format(layout), now.UTC().Format(layout))
	} else if latest := now.Add(api.SigValidity); sig.At.After(latest) {
		return identity{}, api.Fail("SignatureDoesNotMatch", "Signature not yet current: %s is still later than %s (%s + 15 min.)",
			sig.At.Format(layout), latest.UTC().Format(layout), now.UTC().Format(layout))
	}
	// When a role is deleted, its sessions become invalid, also if a new role has its name.
	if key.token != sig.Token || (key.who.role != nil && !r.ids[key.who.role.id]) {
		return identity{}, invalid
	}
	if !key.expires.IsZero() && !now.Before(key.expires) {
		return identity{}, api.Fail("ExpiredToken", "The security token included in the request is expired")
	}
	return key.who, nil
}

// answer writes the result in the service's protocol.
func (r *request) answer(w http.ResponseWriter, out any) {
	if r.service == "eks" {
		if out == nil {
			out = struct{}{}
		}
		r.answerJSON(w, http.StatusOK, out)
		return
	}
	if r.wantsJSON() {
		r.answerJSON(w, http.StatusOK, map[string]any{r.op.name + "Response": map[string]any{
			r.model.Result: out, "ResponseMetadata": map[string]string{"RequestId": r.id},
		}})
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	namespace := api.Models[r.service].XMLNamespace
	_, _ = fmt.Fprintf(w, "<%sResponse xmlns=%q>\n", r.op.name, namespace)
	if r.model.Result != "" {
		_ = xml.NewEncoder(w).EncodeElement(out, xml.StartElement{Name: xml.Name{Local: r.model.Result}})
	}
	_, _ = fmt.Fprintf(w, "\n<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata>\n</%sResponse>\n", r.id, r.op.name)
}

func (r *request) answerError(w http.ResponseWriter, e *api.Error) {
	if r.service == "eks" {
		w.Header().Set("X-Amzn-Errortype", e.Code)
		r.answerJSON(w, e.Status, map[string]string{"message": e.Message})
		return
	}
	fault, namespace := "Sender", ""
	if e.Status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	if m := api.Models[r.service]; m != nil {
		namespace = m.XMLNamespace
	}
	type detail struct{ Type, Code, Message string }
	if r.wantsJSON() {
		r.answerJSON(w, e.Status, map[string]any{"Error": detail{fault, e.Code, e.Message}, "RequestId": r.id})
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(e.Status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName   xml.Name `xml:"ErrorResponse"`
		Namespace string   `xml:"xmlns,attr"`
		Error     detail
		RequestID string `xml:"RequestId"`
	}{Namespace: namespace, Error: detail{fault, e.Code, e.Message}, RequestID: r.id})
}

// wantsJSON reports whether the response of a query API must be JSON, which EKS's authenticator requests from STS.
func (r *request) wantsJSON() bool {
	return r.op != nil && r.op.name == "GetCallerIdentity" && r.http.Header.Get("Accept") == "application/json"
}

func (r *request) answerJSON(w http.ResponseWriter, status int, out any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

// xmlTime is a time in the format of the query protocol.
type xmlTime time.Time

func (t xmlTime) MarshalText() ([]byte, error) {
	return []byte(time.Time(t).UTC().Format("2006-01-02T15:04:05Z")), nil
}
