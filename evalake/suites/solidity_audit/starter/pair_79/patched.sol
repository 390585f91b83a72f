// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IPermitToken {
    function permit(address holder, address spender, uint256 amount, uint256 nonce, bytes32 proof) external;
    function allowance(address holder, address spender) external view returns (uint256);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title FerryToll
/// @notice Passengers pay the toll in a token that takes signed permits instead of approvals.
contract FerryToll {
    IPermitToken public immutable token;
    address public immutable ferryman;
    uint256 public toll;
    mapping(address => uint256) public crossings;

    event TollSet(uint256 toll);
    event Paid(address indexed passenger, uint256 amount);

    constructor(IPermitToken token_, uint256 toll_) {
        token = token_;
        ferryman = msg.sender;
        toll = toll_;
    }

    function setToll(uint256 toll_) external {
        require(msg.sender == ferryman, "not ferryman");
        toll = toll_;
        emit TollSet(toll_);
    }

    /// @notice Pays with an approval that is already there.
    function pay(uint256 maxToll) external {
        _pay(maxToll);
    }

    /// @notice Pays with a signed permit.
    function payWithPermit(uint256 maxToll, uint256 nonce, bytes32 proof) external {
        try token.permit(msg.sender, address(this), maxToll, nonce, proof) {} catch {
            require(token.allowance(msg.sender, address(this)) >= toll, "no permit");
        }
        _pay(maxToll);
    }

    function _pay(uint256 maxToll) private {
        uint256 amount = toll;
        require(amount <= maxToll, "toll raised");
        crossings[msg.sender] += 1;
        emit Paid(msg.sender, amount);
        require(token.transferFrom(msg.sender, ferryman, amount), "transfer failed");
    }
}
