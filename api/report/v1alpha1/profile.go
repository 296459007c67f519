package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Profile is a part of the catalog that an implementation can claim: the behaviors that require the same component of a cluster.
type Profile string

const (
	// ProfileAPI contains behaviors that require only an API server and permissions.
	ProfileAPI Profile = "api"
	// ProfileControllers contains behaviors that require the built-in controllers, such as the garbage collector.
	ProfileControllers Profile = "controllers"
	// ProfileNode contains behaviors that require a real kubelet.
	ProfileNode Profile = "node"
	// ProfileAdmission contains behaviors that require an API server which calls webhooks.
	ProfileAdmission Profile = "admission"
	// ProfileKubectl contains behaviors of kubectl.
	ProfileKubectl Profile = "kubectl"
	// ProfileOperator contains behaviors of the controller of a resource.
	ProfileOperator Profile = "operator"
)

// Profiles are all profiles, in the order of claims.
var Profiles = []Profile{ProfileAPI, ProfileControllers, ProfileNode, ProfileAdmission, ProfileKubectl, ProfileOperator}

// featureProfiles maps each feature to the profile of the behaviors that require it. The first element that a behavior requires decides.
var featureProfiles = []struct {
	feature Feature
	profile Profile
}{
	{Controller, ProfileOperator},
	{OwnCluster, ProfileOperator},
	{Kubectl, ProfileKubectl},
	{Node, ProfileNode},
	{TwoNodes, ProfileNode},
	{PodNetwork, ProfileNode},
	{Hook, ProfileAdmission},
	{GC, ProfileControllers},
	{KCM, ProfileControllers},
	{Namespace, ProfileControllers},
	{SimulatedNode, ProfileAPI},
	{CRD, ProfileAPI},
	{Admin, ProfileAPI},
	{Volume, ProfileAPI},
	{Class, ProfileAPI},
}

// Profile returns the profile of the behavior, which follows from the features that it requires.
func (b Behavior) Profile() Profile {
	for _, of := range featureProfiles {
		if slices.Contains(b.Features, of.feature) {
			return of.profile
		}
	}
	return ProfileAPI
}

// CatalogDigest returns the digest of a list of behaviors: "sha256:" and the SHA-256 in hexadecimal of their ids, levels, features, first
// versions and statements, sorted by id. Two runners with the same digest test the same behaviors.
func CatalogDigest(behaviors []Behavior) string {
	sorted := slices.SortedFunc(slices.Values(behaviors), func(a, b Behavior) int { return strings.Compare(a.ID, b.ID) })
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, b := range sorted {
		_ = encoder.Encode([]any{b.ID, b.Level, append([]Feature{}, b.Features...), b.Since, b.Statement}) // strings, and a hash takes all
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}
