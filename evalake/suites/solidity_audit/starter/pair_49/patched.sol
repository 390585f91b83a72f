// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title HarbourCredit
/// @notice Credit that harbour shops accept; the office issues it against ether and takes it back.
contract HarbourCredit {
    uint256 public constant WEI_PER_CREDIT = 1e12;

    mapping(address => uint256) public credit;
    mapping(address => bool) public isShop;
    address public immutable office;
    uint256 public issued;

    event Issued(address indexed account, uint256 amount);
    event Moved(address indexed from, address indexed to, uint256 amount);
    event Redeemed(address indexed shop, uint256 amount);

    constructor() {
        office = msg.sender;
    }

    function setShop(address account, bool active) external {
        require(msg.sender == office, "not office");
        isShop[account] = active;
    }

    /// @notice Buys credit with ether.
    function buy() external payable {
        uint256 amount = msg.value / WEI_PER_CREDIT;
        require(amount > 0 && amount * WEI_PER_CREDIT == msg.value, "odd amount");
        credit[msg.sender] += amount;
        issued += amount;
        emit Issued(msg.sender, amount);
    }

    /// @notice Pays a shop or another account.
    function transfer(address to, uint256 amount) external {
        require(credit[msg.sender] >= amount, "credit too low");
        credit[msg.sender] -= amount;
        credit[to] += amount;
        emit Moved(msg.sender, to, amount);
    }

    /// @notice Pays a shop the ether behind its credit.
    function redeem(uint256 amount) external {
        require(isShop[msg.sender], "not a shop");
        credit[msg.sender] -= amount;
        issued -= amount;
        emit Redeemed(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount * WEI_PER_CREDIT}("");
        require(sent, "transfer failed");
    }
}
